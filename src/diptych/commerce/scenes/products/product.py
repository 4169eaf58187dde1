"""Products: what is true of one, and what each modality tells of it, before anything is drawn or written.

Every product has its own generators, named by (seed, number, purpose): it does not depend on how many products
there are, nor on what is said of other things, in which order, or by how many processes.
"""

from __future__ import annotations

import html
import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diptych.commerce.scenes.products.facets import DEPARTMENTS, FACETS, MODALITIES, SAID, Effects, Telling
from diptych.commerce.scenes.products.tree import ShopTree
from diptych.core.options import Options, parameter

SPLIT_OF_TEN = ("train", "train", "test", "train", "train", "val", "train", "test", "train", "train")
"""The splits of products 0 to 9, of 10 to 19, and so on."""


def _share(products: str) -> Any:
    return parameter(0.0, f"Share of products {products}.", ge=0, le=1)


class Shares(Options):
    """Parts of all products, 0 to 1."""

    without_picture: float = _share("without an image")
    without_title: float = _share("without a title")
    without_attributes: float = _share("without attributes")
    without_category: float = _share("without a category")
    in_two_places: float = _share("in two categories")
    dirt: float = _share("with HTML in their texts")


@dataclass(frozen=True)
class Product:
    """One product."""

    number: int  # from 0 on
    split: str  # its split
    leaf: int  # the number of the leaf that it belongs to
    facts: Mapping[str, str]  # facet → value, of all facets, the noun included
    # modality → facet → the value that it tells, rightly or wrongly; a modality that is missing is absent
    told: Mapping[str, Mapping[str, str]]
    given: bool  # whether its category is given
    second: int | None  # the number of a second leaf, or None
    dirty: bool  # whether its texts are spoilt


def generator(seed: int, number: int, purpose: str) -> random.Random:
    """Return the generator of one purpose of one product."""
    return random.Random(f"diptych products/{seed}/{number}/{purpose}")


def product_of(seed: int, number: int, tree: ShopTree, effects: Effects, shares: Shares) -> Product:
    """Product ``number`` of a shop."""
    chance = generator(seed, number, "facts")
    leaf = min(bisect_right(tree.cumulative, chance.random()), len(tree.leaves) - 1)
    values = tree.leaves[leaf].values
    facts = {facet: values.get(facet) or chance.choice(list(SAID[facet])) for facet in FACETS}
    facts["noun"] = DEPARTMENTS[facts["department"]].noun
    lot = generator(seed, number, "shares")
    drawn = [lot.random() for _ in range(6)]
    missing = dict(
        zip(
            MODALITIES, (shares.without_picture, shares.without_title, shares.without_attributes), strict=True
        )
    )
    told = {
        modality: _told(generator(seed, number, modality), facts, values, effects, modality)
        for modality, draw in zip(MODALITIES, drawn[:3], strict=True)
        if draw >= missing[modality]
    }
    return Product(
        number=number,
        split=SPLIT_OF_TEN[number % len(SPLIT_OF_TEN)],
        leaf=leaf,
        facts=facts,
        told=told,
        given=drawn[3] >= shares.without_category,
        second=second_place(tree, leaf) if drawn[4] < shares.in_two_places else None,
        dirty=drawn[5] < shares.dirt,
    )


def _told(
    chance: random.Random,
    facts: Mapping[str, str],
    values: Mapping[str, str],
    effects: Effects,
    modality: str,
) -> dict[str, str]:
    """Return what a modality tells, in the order of facets; every facet takes the same draws, told or not."""
    found = {}
    telling = effects.of(modality)
    for facet, value in facts.items():
        how = telling.get(facet, Telling(0.0))
        depends = modality == "picture" or facet == "noun" or facet in values
        draws = chance.random(), chance.random(), chance.random()
        if draws[0] < how.told * (1.0 if depends else effects.beside):
            others = [other for other in SAID[facet] if other != value]
            found[facet] = value if draws[1] < how.right else others[int(draws[2] * len(others))]
    return found


def second_place(tree: ShopTree, leaf: int) -> int | None:
    """The leaf of another department that is most like ``leaf``: of its shape, where any is, and with most values in
    common, the first of several."""
    own = tree.leaves[leaf].values

    def likeness(number: int) -> tuple[bool, int]:
        other = tree.leaves[number].values
        same = sum(own.get(facet) == value for facet, value in other.items())
        return own.get("shape") == other.get("shape"), same

    others = [
        number for number, other in enumerate(tree.leaves) if other.values["department"] != own["department"]
    ]
    return max(others, key=likeness, default=None)


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
    """Return one line of plain text."""
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
    """Return the same text as some feeds have it; ``plain_text`` gives it back.

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
