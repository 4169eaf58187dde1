"""Generated products: a shop with a category tree, planted so that what each modality states is known.

A product depends on (seed, number, levels, size, skew, shares) only, so a larger shop begins with the
products of the smaller one. A category says the department first, then the shape, then what it adds level by level;
which facet comes at which level differs from department to department. Words and numbers stand in ``products.toml``.
"""

import html
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.errors import DataError
from diptych.core.files import write_json
from diptych.core.options import parameter
from diptych.core.reading import file_errors, read_jsonl, read_toml
from diptych.data.collection import Collection
from diptych.data.products import plain_text
from diptych.data.readers.contract import Gathering, begins, reader
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import COLOUR_WORDS, LIGHTS, MATERIAL_WORDS, SHAPE_WORDS
from diptych.data.scenes.generator import Generator, ImageOptions, Span, least_and_most, parts_of, sizes_of
from diptych.data.scenes.world import SceneObject, World

SHOP = read_toml(Path(__file__).with_suffix(".toml"))

DEPARTMENTS: Mapping[str, Mapping[str, str]] = SHOP["departments"]
"""Root of the tree → the background of its images and the noun of what it sells."""

WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "department": {name: (name,) for name in DEPARTMENTS},
    "shape": SHAPE_WORDS,
    "colour": COLOUR_WORDS,
    "finish": MATERIAL_WORDS,
    **SHOP["words"],
}
"""Facet → value → what titles say for it; the first is the category's word, and what attributes say."""

FACETS = tuple(facet for facet in WORDS if facet != "noun")
"""What a category can depend on: one for each of nine levels. The noun follows from the department."""

MODALITIES = ("picture", "title", "attributes")

_TITLES, _EFFECTS = SHOP["titles"], SHOP["effects"]

PRODUCTS = "products.jsonl"
"""A line for each product: its record, ``belongs`` (the path that it belongs to, given or not), ``depends`` (the facets
that this category depends on, one for each level), ``facts`` (of every facet) and what each
modality states, rightly or wrongly, under :data:`STATED`."""

STATED = "told"  # the key in files of what a modality states, and of the probability that it does

_KEPT = ("attributes", "category_paths", "belongs", "depends", "facts", STATED)  # of a line, in records

TRUTH = "truth.json"
"""``effects``, what each modality states, and ``leaves``: path, values and probability of each category of products."""

_SPLITS = ("train", "train", "test", "train", "train", "val", "train", "test", "train", "train")


class Leaf(NamedTuple):
    """A category without children."""

    path: tuple[str, ...]  # names from the root on
    values: dict[str, str]  # facet → value, of the facets that it depends on, in their order
    prior: float  # probability that a product is here


def grow(seed: int, levels: tuple[int, int] = (2, len(FACETS)), skew: float = 0.0) -> list[Leaf]:
    """Grow a tree and return its leaves, on ``levels``: every department has an order of its own in which facets come.

    ``skew`` is the part of all products that is in the most frequent leaf, before the others'.
    """
    chance = random.Random(f"diptych products/{seed}/tree")
    departments = list(DEPARTMENTS)
    chance.shuffle(departments)
    weights = [1 / (rank + 3) for rank in range(len(departments))]  # some departments sell more
    stock = {facet: list(WORDS[facet]) for facet in FACETS}
    for facet, number in SHOP["tree"]["stock"].items():
        stock[facet] = chance.sample(stock[facet], number)
    # Leaves are evenly spread over the nodes of a level, so that small trees are as deep as large ones.
    stops = _stops(*levels)
    sums = {level: chance.random() for level in stops}

    def below(
        order: list[str], values: dict[str, str], path: tuple[str, ...], prior: float
    ) -> Iterator[Leaf]:
        level = len(path)
        before = int(sums[level])
        sums[level] += stops[level]
        if stops[level] >= 1 or int(sums[level]) > before:
            yield Leaf(path, values, prior)
            return
        facet = order[level]
        some = chance.sample(stock[facet], chance.randint(*SHOP["tree"]["children"][level - 1]))
        shares = [chance.uniform(0.5, 1.5) for _ in some]
        for value, share in zip(some, shares, strict=True):
            further = {**values, facet: value}
            yield from below(order, further, (*path, _name(further)), prior * share / sum(shares))

    leaves: list[Leaf] = []
    for name, weight in zip(departments, weights, strict=True):
        seen, unseen = ["colour", "finish"], list(FACETS[4:])
        chance.shuffle(seen)
        chance.shuffle(unseen)
        order = ["department", "shape", *seen, *unseen]
        leaves += below(order, {"department": name}, (name,), weight / sum(weights))
    largest = max(leaves, key=lambda leaf: leaf.prior)
    return [leaf._replace(prior=leaf.prior * (1 - skew) + skew * (leaf is largest)) for leaf in leaves]


def _stops(least: int, most: int) -> dict[int, float]:
    """Return which part of the nodes of each level have no children."""
    depths = SHOP["tree"]["depths"]
    here = np.interp(np.linspace(0, len(depths) - 1, most - least + 1), np.arange(len(depths)), depths)
    shares = (here / np.cumsum(here[::-1])[::-1]).tolist()
    return dict.fromkeys(range(1, least), 0.0) | dict(enumerate(shares, start=least))


def _name(values: dict[str, str]) -> str:
    """Return a category's name: its last words first, before the shape and what the department sells."""
    department, shape, *others = values.values()
    words = [*reversed(others[-3:]), shape, f"{DEPARTMENTS[department]['noun']}s"]
    return " ".join(word.capitalize() for word in words)


def _share(products: str) -> Any:
    return parameter(0.0, f"Share of products {products}.", ge=0, le=1)


class ProductOptions(ImageOptions):
    """Options of generated products; shares are parts of all products, 0 to 1."""

    without_picture: float = _share("without an image")
    without_title: float = _share("without a title")
    without_attributes: float = _share("without attributes")
    without_category: float = _share("without a category")
    in_two_places: float = _share("in two categories")
    dirt: float = _share("with HTML in their texts")
    n_products: int = parameter(2000, "Products.", "--n", ge=1, le=100_000)
    levels: Span = parameter(f"2-{len(FACETS)}", "Levels of a category path, e.g. 3 or 2-5.")
    skew: float = parameter(0.0, "Share of products in one category, e.g. 0.5.", ge=0, le=1)


class Products(Generator):
    """Images, ``products.jsonl``, and ``truth.json`` with what is planted."""

    dataset = "product-scenes"
    noun = "product scenes"
    command = "diptych data products"
    version = 1
    unit = "products"

    def __init__(self, given: ProductOptions) -> None:
        self.given, self.levels = given, least_and_most(given.levels, "levels", len(FACETS))
        parameters = {
            **dict.fromkeys(("n_products", "levels", "seed", "size", "skew")),  # which come first
            **given.model_dump(exclude={"workers"}),
            "levels": list(self.levels),
            "effects": "usual",
        }
        super().__init__(parameters, given.n_products, given.workers, _EFFECTS)

    @cached_property
    def leaves(self) -> list[Leaf]:
        return grow(self.given.seed, self.levels, self.given.skew)

    def chunks(self) -> list[range]:
        return parts_of(self.total)

    def make_chunk(self, folder: Path, chunk: range) -> list[dict[str, Any]]:
        lines = [self.line(number) for number in chunk]
        for number, line in zip(chunk, lines, strict=True):
            if line["picture"]:
                chance = random.Random(f"diptych products/{self.given.seed}/{number}/drawing")
                picture = _draw(line[STATED]["picture"], chance, self.given.size)
                # noise does not compress: level 1 is about as small as level 9 here, and several times faster
                picture.save(folder / line["picture"], "PNG", compress_level=1)
        return lines

    def write(self, folder: Path, chunks: Iterator[list[dict[str, Any]]]) -> dict[str, Any]:
        for thousand in range(0, self.total, 1000):
            (folder / _picture(thousand)).parent.mkdir(parents=True)
        with open(folder / PRODUCTS, "w", encoding="utf-8", newline="\n") as file:
            for line in chain.from_iterable(chunks):
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        write_json(folder / TRUTH, {"effects": _EFFECTS, "leaves": [leaf._asdict() for leaf in self.leaves]})
        return {"files": sizes_of(folder)}

    def line(self, number: int) -> dict[str, Any]:
        """Return a product as ``products.jsonl`` has it; nothing else draws from the generators of its purposes."""
        given = self.given

        def chance_of(purpose: str) -> random.Random:
            return random.Random(f"diptych products/{given.seed}/{number}/{purpose}")

        chance, lot = chance_of("facts"), chance_of("shares")
        (leaf,) = chance.choices(self.leaves, [leaf.prior for leaf in self.leaves])
        facts = {facet: leaf.values.get(facet) or chance.choice(list(WORDS[facet])) for facet in FACETS}
        facts["noun"] = DEPARTMENTS[facts["department"]]["noun"]
        missing = (given.without_picture, given.without_title, given.without_attributes)
        present = [
            modality for modality, share in zip(MODALITIES, missing, strict=True) if lot.random() >= share
        ]
        stated = {modality: _stated(modality, facts, leaf, chance_of(modality)) for modality in present}
        categorised = lot.random() >= given.without_category
        paths = [leaf.path]
        if lot.random() < given.in_two_places and (second := _second_place(self.leaves, leaf)):
            paths.append(second.path)
        title, attributes = None, {}
        if "title" in stated:
            title = title_of(stated["title"], chance_of("words"), _EFFECTS["synonyms"])
        if "attributes" in stated:
            attributes = attributes_of(stated["attributes"], chance_of("sheet"))
        if lot.random() < given.dirt:
            dirt = chance_of("dirt")
            title = None if title is None else spoilt(title, dirt)
            attributes = {name: spoilt(value, dirt) for name, value in attributes.items()}
            if attributes:
                attributes["note"] = dirt.choice(("", " ", "<br>", "&nbsp;"))  # a name without a value
        return {
            "id": f"p{number:06}",
            "split": _SPLITS[number % len(_SPLITS)],
            "picture": _picture(number) if "picture" in stated else None,
            "title": title,
            "attributes": attributes,
            "category_paths": [list(path) for path in paths] if categorised else [],
            "belongs": list(leaf.path),
            "depends": list(leaf.values),
            "facts": facts,
            STATED: stated,
        }


def _stated(modality: str, facts: Mapping[str, str], leaf: Leaf, chance: random.Random) -> dict[str, str]:
    """Return what a modality states, in the order of facets; every facet takes the same draws, stated or not."""
    found = {}
    for facet, value in facts.items():
        draws = chance.random(), chance.random(), chance.random()
        if how := _EFFECTS[modality].get(facet):
            depends = modality == "picture" or facet == "noun" or facet in leaf.values
            if draws[0] < how[STATED] * (1.0 if depends else _EFFECTS["beside"]):
                others = [other for other in WORDS[facet] if other != value]
                found[facet] = value if draws[1] < how["right"] else others[int(draws[2] * len(others))]
    return found


def _picture(number: int) -> str:
    return f"pictures/{number // 1000:03}/{number:06}.png"


def _draw(stated: Mapping[str, str], chance: random.Random, size: int) -> Any:
    x, y = 0.5 + chance.uniform(-0.1, 0.1), 0.5 + chance.uniform(-0.1, 0.1)
    radius = chance.uniform(0.26, 0.34)
    item = SceneObject(stated["shape"], stated["colour"], "large", stated["finish"], x, y, radius)
    background = DEPARTMENTS[stated["department"]]["background"]
    return draw_world(World((item,), background, chance.choice(LIGHTS), "neutral", "none"), chance, size)


def _second_place(leaves: Sequence[Leaf], own: Leaf) -> Leaf | None:
    """Return the leaf of another department most like ``own``: of its shape first, then by values in common."""

    def likeness(leaf: Leaf) -> tuple[bool, int]:
        same = own.values.items() & leaf.values.items()
        return own.values.get("shape") == leaf.values.get("shape"), len(same)

    return max((leaf for leaf in leaves if leaf.path[0] != own.path[0]), key=likeness, default=None)


def title_of(stated: Mapping[str, str], chance: random.Random, synonyms: float) -> str:
    words = []
    for facet in _TITLES["order"]:
        if facet in stated:
            first, *others = WORDS[facet][stated[facet]]
            other = others and chance.random() < synonyms
            words.append(chance.choice(others) if other else first)
    head = " ".join(words).title().replace("'S", "'s")
    letters = "".join(chance.choice(_TITLES["letters"]) for _ in range(2))
    brand = chance.choice(_TITLES["brands"])
    parts = [f"{brand} {head}".strip(), f"{letters}-{chance.randint(100, 999)}"]
    for share, ends in ((0.5, _TITLES["praise"]), (0.4, _TITLES["packs"])):
        if chance.random() < share:
            parts.append(chance.choice(ends))
    return ", ".join(parts)


def attributes_of(stated: Mapping[str, str], chance: random.Random) -> dict[str, str]:
    """Name → value: what attributes state, under the facets' names, and what says nothing of the category."""
    found = {facet: WORDS[facet][value][0] for facet, value in stated.items()}
    if chance.random() < 0.7:
        found["brand"] = chance.choice(_TITLES["brands"])
    if chance.random() < 0.5:
        found["weight"] = f"{chance.randint(2, 90) * 10} g"
    if chance.random() < 0.3:
        found["country of origin"] = chance.choice(_TITLES["countries"])
    names = list(found)
    chance.shuffle(names)
    return {name: found[name] for name in names}


def spoilt(text: str, chance: random.Random) -> str:
    """Return the same text as some feeds have it, with no word changed; ``plain_text`` gives it back."""
    written = html.escape(text, quote=False)
    first, blank, rest = written.partition(" ")
    forms = (
        f"<b>{first}</b>{blank}{rest}",
        f"<p class='title'>{written}<br/></p>",
        written.replace(" ", "&nbsp;", 1) + "<!-- seo -->",
        html.escape(f"<i>{written}</i>", quote=False),
        f"\t{written.replace(' ', '  ')}\n",
        f"<style>.t{{color:red}}</style>{written}",
    )
    return chance.choice(forms)


def make_product_scenes(folder: Path | str | None = None, n_products: int = 2000, **options: Any) -> Path:
    """Make the products of a shop, or find those made earlier, in a folder or in the cache.

    Args:
        options: further fields of :class:`ProductOptions`.
    """
    return Products(ProductOptions.read({"n_products": n_products, **options}, "products")).make(folder)


@reader(
    "product-scenes",
    "generated products with a category tree, as diptych data products writes them",
    "dataset.json",
    claims=begins('{"dataset":"product-scenes"'),
)
def read_product_scenes(folder: Path | str) -> Collection:
    folder, again = Path(folder), f"generate them again with `{Products.command}`"
    header, file, gathered = Products.read_header(folder), folder / PRODUCTS, Gathering()
    with file_errors(file, DataError, again):
        for _, line in read_jsonl(file, DataError, again):
            name, title = line["id"], plain_text(line["title"] or "")
            record = {"title": title, **{key: line[key] for key in _KEPT}, "product": name}
            titles = [title] if title else []
            item = gathered.add(name, titles, line["split"], record, ids=[f"{name}#title" for _ in titles])
            item.image = line["picture"] or ""
        (least, most), total = header["levels"], header["n_products"]
    if len(gathered.items) != total:
        raise DataError(f"{file} holds {len(gathered.items):,} products, {total:,} expected", again)
    note = f"product scenes version {Products.version}, seed {header['seed']}, {header['size']} pixels, "
    return gathered.collection(Products.dataset, folder, "object", [f"{note}{least} to {most} levels"])


def product_scenes(folder: Path | str | None = None, n_products: int = 2000, **options: Any) -> Collection:
    """Make the products, or find them in the cache, and read them; see :func:`make_product_scenes`."""
    return read_product_scenes(make_product_scenes(folder, n_products, **options))
