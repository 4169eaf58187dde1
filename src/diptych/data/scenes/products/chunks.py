"""Runs of products made here or in other processes, in order: pictures as files, the rest as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from diptych.data.scenes.processes import answer_lines, in_order
from diptych.data.scenes.products.effects import Effects
from diptych.data.scenes.products.picture import draw_product
from diptych.data.scenes.products.product import Product, Shares, generator, product_of
from diptych.data.scenes.products.telling import attributes_of_product, spoilt, title_of_product
from diptych.data.scenes.products.tree import ShopTree, grow

__all__ = ["Chunk", "Shop", "line_of", "make_chunk", "make_chunks", "picture_file", "serve"]


_PROGRAM = "from diptych.data.scenes.products.chunks import serve; serve()"


@dataclass(frozen=True)
class Shop:
    """Everything that products are made of.

    Attributes:
        seed: of all draws.
        levels: the least and the most levels of a category.
        size: side of a picture in pixels.
        skew: share of products in one category.
        shares: parts of products that lack something, or have too much.
        effects: what is planted.
    """

    seed: int
    levels: tuple[int, int]
    size: int
    skew: float
    shares: Shares
    effects: Effects

    @cached_property
    def tree(self) -> ShopTree:
        """Where products are."""
        return grow(self.seed, self.levels).with_skew(self.skew)

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Shop:
        """What ``asdict`` made of one, lists for tuples."""
        return Shop(
            given["seed"],
            tuple(given["levels"]),
            given["size"],
            given["skew"],
            Shares(**given["shares"]),
            Effects.from_dict(given["effects"]),
        )

    def product(self, number: int) -> Product:
        """Product ``number``."""
        return product_of(self.seed, number, self.tree, self.effects, self.shares)

    def draw(self, product: Product, folder: Path) -> None:
        """Write a product's picture, if it has one."""
        if "picture" in product.told:
            chance = generator(self.seed, product.number, "drawing")
            picture = draw_product(product.told["picture"], chance, self.size)
            # noise does not compress: level 1 is about as small as level 9 here, and several times faster
            picture.save(folder / picture_file(product.number), "PNG", compress_level=1)


def picture_file(number: int) -> str:
    """The picture's name inside the dataset's folder; a thousand to a folder."""
    return f"pictures/{number // 1000:03}/{number:06}.png"


def line_of(shop: Shop, product: Product) -> dict[str, Any]:
    """A product as ``products.jsonl`` has it."""
    told = product.told
    title = attributes = None
    if "title" in told:
        chance = generator(shop.seed, product.number, "words")
        title = title_of_product(told["title"], chance, shop.effects.synonyms)
    if "attributes" in told:
        attributes = attributes_of_product(told["attributes"], generator(shop.seed, product.number, "sheet"))
    if product.dirty:
        title, attributes = _dirty(title, attributes or {}, shop.seed, product.number)
    leaves = [shop.tree.leaves[product.leaf]]
    if product.second is not None:
        leaves.append(shop.tree.leaves[product.second])
    return {
        "id": f"p{product.number:06}",
        "split": product.split,
        "picture": picture_file(product.number) if "picture" in told else None,
        "title": title,
        "attributes": attributes or {},
        "category_paths": [list(leaf.path) for leaf in leaves] if product.given else [],
        "belongs": list(leaves[0].path),
        "depends": list(leaves[0].values),
        "facts": dict(product.facts),
        "told": {modality: dict(values) for modality, values in told.items()},
    }


def _dirty(
    title: str | None, attributes: Mapping[str, str], seed: int, number: int
) -> tuple[str | None, dict[str, str]]:
    chance = generator(seed, number, "dirt")
    written = None if title is None else spoilt(title, chance)
    found: dict[str, str] = {name: spoilt(value, chance) for name, value in attributes.items()}
    if found:
        found["note"] = chance.choice(("", " ", "<br>", "&nbsp;"))  # a name without a value
    return written, found


@dataclass(frozen=True)
class Chunk:
    """Products ``start`` to ``stop`` of a shop; ``folder`` holds the folders of their pictures."""

    shop: Shop
    start: int
    stop: int
    folder: str


def make_chunk(chunk: Chunk) -> list[dict[str, Any]]:
    """Draw the products of one chunk and give their lines."""
    lines = []
    for number in range(chunk.start, chunk.stop):
        product = chunk.shop.product(number)
        chunk.shop.draw(product, Path(chunk.folder))
        lines.append(line_of(chunk.shop, product))
    return lines


def make_chunks(chunks: Sequence[Chunk], workers: int) -> Iterator[list[dict[str, Any]]]:
    """Make chunks, in this process (``workers`` = 1) or in others, and yield their lines in order.

    Raises:
        OSError: a picture could not be written, here or there.
        DiptychError: another process ended without an answer.
    """
    return in_order(make_chunk, chunks, workers, _PROGRAM)


def serve() -> None:
    """What another process runs: a chunk per line of standard input, its lines for each."""
    known: dict[str, Shop] = {}  # a tree is grown once

    def made(given: dict[str, Any]) -> list[dict[str, Any]]:
        shop = known.setdefault("shop", Shop.from_dict(given["shop"]))
        return make_chunk(Chunk(shop, given["start"], given["stop"], given["folder"]))

    answer_lines(made)
