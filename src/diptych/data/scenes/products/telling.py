"""Titles and attributes: what they tell of a product, among brands, model numbers and other things that tell
nothing; and what spoils them."""

from __future__ import annotations

import html
import random
from collections.abc import Mapping

from diptych.data.scenes.products.facets import SAID

BRANDS = (
    "Acme", "Borealis", "Castor & Sons", "Dovetail", "Everyday Basics", "Fjordline", "Granny's", "Hinterland",
    "Ixo", "Jumpstart", "Kestrel", "Lumen Works", "Mapleton", "Northgate", "Old Mill", "Pebble", "Quill",
    "Rook & Co", "Saltbox", "Tinker", "Umber", "Verano", "Wayfarer", "Yonder",
)  # fmt: skip
"""Of products of all categories alike."""

_PRAISE = (
    "best seller",
    "high quality",
    "new",
    "with gift box",
    "free returns",
    "2 year warranty",
    "top rated",
)
_PACKS = ("1 pc", "2 pcs", "3-pack", "set of 4", "10 pcs")
_ORDER = ("occasion", "style", "use", "feature", "size", "finish", "colour", "shape", "noun")
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def title_of_product(told: Mapping[str, str], chance: random.Random, synonyms: float) -> str:
    """One line of plain text."""
    words = []
    for facet in _ORDER:
        if facet in told:
            first, *others = SAID[facet][told[facet]]
            other = others and chance.random() < synonyms
            words.append(chance.choice(others) if other else first)
    head = " ".join(words).title().replace("'S", "'s")
    letters = "".join(chance.choice(_LETTERS) for _ in range(2))
    parts = [f"{chance.choice(BRANDS)} {head}".strip(), f"{letters}-{chance.randint(100, 999)}"]
    if chance.random() < 0.5:
        parts.append(chance.choice(_PRAISE))
    if chance.random() < 0.4:
        parts.append(chance.choice(_PACKS))
    return ", ".join(parts)


def attributes_of_product(told: Mapping[str, str], chance: random.Random) -> dict[str, str]:
    """Name → value: what attributes tell, under the facets' names, and what tells nothing."""
    found = {facet: SAID[facet][value][0] for facet, value in told.items()}
    if chance.random() < 0.7:
        found["brand"] = chance.choice(BRANDS)
    if chance.random() < 0.5:
        found["weight"] = f"{chance.randint(2, 90) * 10} g"
    if chance.random() < 0.3:
        found["country of origin"] = chance.choice(("PT", "VN", "DE", "TR", "IN"))
    names = list(found)
    chance.shuffle(names)
    return {name: found[name] for name in names}


def spoilt(text: str, chance: random.Random) -> str:
    """The same text as some feeds have it; ``plain_text`` gives it back.

    Nothing comes between two words but white space, and no word is changed.
    """
    first, blank, rest = text.partition(" ")
    written = html.escape(text, quote=False)
    forms = (
        f"<b>{html.escape(first, quote=False)}</b>{blank}{html.escape(rest, quote=False)}",
        f"<p class='title'>{written}<br/></p>",
        written.replace(" ", "&nbsp;", 1) + "<!-- seo -->",
        html.escape(f"<i>{written}</i>", quote=False),
        f"\t{written.replace(' ', '  ')}\n",
        f"<style>.t{{color:red}}</style>{written}",
    )
    return chance.choice(forms)
