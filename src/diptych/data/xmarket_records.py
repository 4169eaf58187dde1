"""What an XMarket record says of a product: pages of a shop, scraped, with what pages have besides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diptych.data.product_gathering import short_text
from diptych.data.products import split_path

ATTRIBUTES = {"overview": "overviewFeatures", "details": "productDetails", "features": "features"}
"""What can be a product's attributes, and the keys of the records."""

_TELLING = (
    # The rank names the category, and the others say nothing of the product.
    *("best sellers rank", "amazon best sellers rank", "bestsellers rank", "amazon bestsellers rank"),
    *("bestseller-rang", "amazon bestseller-rang", "classement des meilleures ventes d'amazon"),
    *("clasificación en los más vendidos de amazon", "posizione nella classifica bestseller di amazon"),
    *("amazon 売れ筋ランキング", "売れ筋ランキング"),
    *("customer reviews", "customer ratings", "average customer review", "durchschnittliche kundenbewertung"),
    *("kundenrezensionen", "commentaires client", "opiniones de los clientes", "recensioni clienti"),
    *("asin", "date first available", "date first listed on amazon", "im angebot von amazon.de seit"),
)
_CODE = re.compile(r"\bfunction\s*\(|\bvar \w+\s*=|\bP\.when\(")
_BLOCK = re.compile(r"\{([^{}]*)\}")
_RANK = re.compile(r"(?:^|\s)(?:#|Nr\. ?|n\. ?|nº ?|n\.º ?)[\d.,]+ (?:in|en) ", re.IGNORECASE)


def _pairs(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Name and value of each attribute in a dict, or of each text in a list, all under one name."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            for part in one if isinstance(one, list | tuple) else (one,):
                yield str(key), part
    elif isinstance(value, list | tuple):
        for one in value:
            yield name, one
    elif value:
        yield name, value


def _is_code(text: str) -> bool:
    blocks = (found[1] for found in _BLOCK.finditer(text))
    return any(":" in block or ";" in block for block in blocks) or _CODE.search(text) is not None


def attributes_in(record: Mapping[str, Any], wanted: Sequence[str]) -> tuple[dict[str, list[str]], int]:
    """The attributes of a product, and how many were left out as not of the product.

    Left out are ranks (they name the category that is asked for), reviews, the shop's own id and dates, style sheets
    and scripts. A value that was there under the same name counts once.
    """
    found: dict[str, list[str]] = {}
    junk = 0
    for part in wanted:
        for raw_name, raw in _pairs(record.get(ATTRIBUTES[part]), "feature"):
            name = short_text(raw_name).strip(" :")
            if isinstance(raw, Mapping | list | tuple) or _is_code(str(raw)):
                junk += 1
                continue
            value = short_text(raw).strip(" :")
            if not value or not name:
                continue
            if name.lower() in _TELLING or _RANK.search(value):
                junk += 1
            elif value not in (values := found.setdefault(name, [])):
                values.append(value)
    return found, junk


def _area(size: Any) -> float:
    try:
        height, width = size
        return float(height) * float(width)
    except (TypeError, ValueError):
        return 0.0


def largest_picture(given: Any) -> str:
    """The address of a product's largest picture, ``""`` where there is none."""
    if isinstance(given, str) and given.lstrip()[:1] in ("{", "["):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return ""
    if isinstance(given, str):
        given = [given]
    sizes: dict[str, float] = {}
    if isinstance(given, Mapping):
        sizes = {str(address): _area(size) for address, size in given.items()}
    elif isinstance(given, list | tuple):
        sizes = {one: 0.0 for one in given if isinstance(one, str)}
    known = {
        a.strip(): size for a, size in sizes.items() if a.strip().lower().startswith(("http://", "https://"))
    }
    return max(known, key=lambda address: known[address], default="")


def path_in(given: Any) -> tuple[str, ...]:
    """The category path of a product: a list from the root on, or one text with ``>`` or ``›`` between the names."""
    if isinstance(given, str):
        return split_path(given.replace(" › ", " > "))
    if isinstance(given, list | tuple):
        names = (short_text(name) for name in given if isinstance(name, str))
        return tuple(name for name in names if name not in ("", "›", ">"))
    return ()
