"""Generate a shop of product scenes, and read it.

A product depends on (seed, number, levels, size, skew, shares, effects) alone. So any number of processes makes the
same bytes, and a larger shop begins with the products of the smaller one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.scenes.products.facets import (
    DATASET,
    DEPARTMENTS,
    FACETS,
    PRODUCTS,
    TRUTH,
    VERSION,
    Effects,
)
from diptych.commerce.scenes.products.product import (
    Product,
    Shares,
    attributes_of_product,
    generator,
    product_of,
    spoilt,
    title_of_product,
)
from diptych.commerce.scenes.products.tree import LEVELS, ShopTree, grow
from diptych.commerce.scenes.products.truth import Truth
from diptych.core.context import task
from diptych.core.errors import DataError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import parameter
from diptych.core.processes import available_cores, in_processes
from diptych.core.reading import read_jsonl
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.products import plain_text
from diptych.data.scenes.cached import (
    GeneratedImages,
    Span,
    Specification,
    cached_dataset,
    least_and_most,
    read_header,
    sizes_of,
)
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import LIGHTS
from diptych.data.scenes.world import SceneObject, World

if TYPE_CHECKING:
    from PIL.Image import Image


_RADII = (0.26, 0.34)


def draw_product(told: Mapping[str, str], chance: random.Random, size: int) -> Image:
    """Draw what a picture tells.

    Args:
        size: side of the square picture in pixels.

    Returns:
        An RGB Pillow picture, (size, size).
    """
    item = SceneObject(
        told["shape"],
        told["colour"],
        "large",
        told["finish"],
        0.5 + chance.uniform(-0.1, 0.1),
        0.5 + chance.uniform(-0.1, 0.1),
        chance.uniform(*_RADII),
    )
    background = DEPARTMENTS[told["department"]].background
    return draw_world(World((item,), background, chance.choice(LIGHTS), "neutral", "none"), chance, size)


@dataclass(frozen=True)
class Shop:
    """Everything that products are made of."""

    seed: int  # of all draws
    levels: tuple[int, int]  # the least and the most levels of a category
    size: int  # side of a picture in pixels
    skew: float  # share of products in one category
    shares: Shares  # parts of products that lack something, or have too much
    effects: Effects  # what is planted

    @cached_property
    def tree(self) -> ShopTree:
        """Return where products are."""
        return grow(self.seed, self.levels).with_skew(self.skew)

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
    """Return the picture's name inside the dataset's folder; a thousand to a folder."""
    return f"pictures/{number // 1000:03}/{number:06}.png"


def line_of(shop: Shop, product: Product) -> dict[str, Any]:
    """Return a product as ``products.jsonl`` has it."""
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


N_PRODUCTS = 2000

_MOST_PRODUCTS = 100_000
_CHUNK = 64
_SERIAL_BELOW = 512  # starting processes takes longer than drawing this many


class ProductOptions(Shares, GeneratedImages):
    """What generated products are like."""

    n_products: int = parameter(N_PRODUCTS, "Products.", "--n", ge=1, le=_MOST_PRODUCTS)
    levels: Span = parameter("-".join(map(str, LEVELS)), "Levels of a category path, e.g. 3 or 2-5.")
    skew: float = parameter(0.0, "Share of products in one category, e.g. 0.5.", ge=0, le=1)


def make_product_scenes(
    folder: Path | str | None = None,
    n_products: int = N_PRODUCTS,
    *,
    effects: Effects | None = None,
    **options: Any,
) -> Path:
    """Make the products of a shop with planted effects, or find those made earlier.

    Args:
        folder: where they are; None for a folder of the cache.
        effects: what is planted.
        options: further fields of :class:`ProductOptions`.
    """
    given = ProductOptions.read({"n_products": n_products, **options}, "products")
    effects = effects or Effects()
    effects.check()
    levels = least_and_most(given.levels, "levels", len(FACETS))
    shop = Shop(given.seed, levels, given.size, given.skew, given, effects)
    workers = given.workers or (1 if n_products < _SERIAL_BELOW else available_cores())
    parameters = {
        "n_products": n_products,
        "levels": list(shop.levels),
        **given.model_dump(include={"seed", "size", "skew"}),
        **given.model_dump(include=set(Shares.model_fields)),
        "effects": "usual" if effects == Effects() else fingerprint(asdict(effects)),
    }
    wanted = Specification(DATASET, "product scenes", VERSION, parameters, (asdict(effects),))
    return cached_dataset(folder, wanted, lambda target: _write_shop(target, shop, n_products, workers))


def _write_shop(folder: Path, shop: Shop, n: int, workers: int) -> dict[str, Any]:
    for thousand in range(0, n, 1000):
        (folder / "pictures" / f"{thousand // 1000:03}").mkdir(parents=True)
    chunks = [Chunk(shop, start, min(start + _CHUNK, n), str(folder)) for start in range(0, n, _CHUNK)]
    truth = Truth(shop.tree, shop.effects)
    with (
        open(folder / PRODUCTS, "w", encoding="utf-8", newline="\n") as file,
        task("making products", n, "products") as bar,
    ):
        for made in in_processes(chunks, make_chunk, workers, ordered=True):
            truth.add(made)
            for line in made:
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            bar.advance(len(made))
    write_json(folder / TRUTH, truth.to_dict())
    return {"files": sizes_of(folder)}


_COMMAND = "diptych data products"
_AGAIN = f"generate them again with `{_COMMAND}`"


def read_product_scenes(folder: Path | str) -> Collection:
    """Read what :func:`make_product_scenes` made."""
    folder = Path(folder)
    header = read_header(folder, DATASET, "product scenes", VERSION, _COMMAND)
    try:
        return _collection(folder, header)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder} is not as it was made ({type(error).__name__}: {error})", _AGAIN) from None


def _collection(folder: Path, header: dict[str, Any]) -> Collection:
    lines = _lines(folder / PRODUCTS, header["n_products"])
    pictures = [line["picture"] for line in lines if line["picture"] is not None]
    pictured = np.array([line["picture"] is not None for line in lines], dtype=bool)
    titles = [plain_text(line["title"] or "") for line in lines]
    titled = [row for row, title in enumerate(titles) if title]
    return Collection(
        name=DATASET,
        image_ids=[line["id"] for line in lines],
        captions=[titles[row] for row in titled],
        caption_ids=[f"{lines[row]['id']}#title" for row in titled],
        caption_image=np.asarray(titled, dtype=np.int64),
        splits=[line["split"] for line in lines],
        source=FolderSource(folder, pictures),
        source_rows=np.where(pictured, np.cumsum(pictured) - 1, -1).astype(np.int64),
        records=[_record(line, title) for line, title in zip(lines, titles, strict=True)],
        notes=(
            f"product scenes version {VERSION}, seed {header['seed']}, {header['size']} pixels, "
            f"{header['levels'][0]} to {header['levels'][1]} levels",
        ),
        centric="object",
    )


def _record(line: dict[str, Any], title: str) -> dict[str, Any]:
    kept = {key: line[key] for key in ("attributes", "category_paths", "belongs", "depends", "facts", "told")}
    return {"title": title, **kept, "product": line["id"]}


def _lines(path: Path, expected: int) -> list[dict[str, Any]]:
    lines = [value for _, value in read_jsonl(path, DataError, _AGAIN)]
    if len(lines) != expected:
        raise DataError(f"{path} holds {len(lines):,} products, {expected:,} expected", _AGAIN)
    return lines


def product_scenes(folder: Path | str | None = None, n_products: int = 2000, **options: Any) -> Collection:
    """Make the products, or find them in the cache, and read them.

    Arguments are as in :func:`make_product_scenes`.
    """
    return read_product_scenes(make_product_scenes(folder, n_products, **options))
