"""Making a shop of product scenes, once, and finding it again.

A product depends on (seed, number, levels, size, skew, shares, effects) alone. So any number of processes makes the
same bytes, and a larger shop begins with the products of the smaller one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, cache_root, write_json, write_text
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.processes import available_cores, in_processes
from diptych.core.reading import read_json, read_jsonl
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.products import plain_text
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import LIGHTS
from diptych.data.scenes.made_once import Wanted, found, refuse_strange, sizes_hold
from diptych.data.scenes.products.facets import (
    DATASET,
    DEPARTMENTS,
    MARKER,
    PRODUCTS,
    TRUTH,
    VERSION,
    Effects,
)
from diptych.data.scenes.products.product import (
    Product,
    Shares,
    attributes_of_product,
    generator,
    product_of,
    spoilt,
    title_of_product,
)
from diptych.data.scenes.products.tree import LEVELS, ShopTree, check_levels, grow
from diptych.data.scenes.products.truth import Truth
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
    """Make chunks, in this process (``workers`` = 1) or in others, and yield their lines in order."""
    return in_processes(chunks, make_chunk, workers, ordered=True)


N_PRODUCTS = 2000

_MOST_PRODUCTS = 100_000
_SMALLEST, _LARGEST = 32, 1024
_CHUNK = 64
_SERIAL_BELOW = 512  # starting processes takes longer than drawing this many


@dataclass(frozen=True)
class _Parameters:
    n_products: int
    shop: Shop

    def check(self) -> None:
        if not 1 <= self.n_products <= _MOST_PRODUCTS:
            raise UsageError(f"{self.n_products} products were asked for", f"give 1 to {_MOST_PRODUCTS:,}")
        shop = self.shop
        if not _SMALLEST <= shop.size <= _LARGEST:
            raise UsageError(
                f"pictures of {shop.size} pixels were asked for", f"give size={_SMALLEST} to {_LARGEST}"
            )
        for what, share in {"skew": shop.skew, **asdict(shop.shares)}.items():
            if not 0 <= share <= 1:
                raise UsageError(
                    f"{what} is {share}", f"give a share of all products, 0 to 1, e.g. {what}=0.1"
                )
        shop.effects.check()

    def said(self) -> dict[str, Any]:
        """What ``dataset.json`` says of them."""
        shop = self.shop
        usual = shop.effects == Effects()
        return {
            "n_products": self.n_products,
            "levels": list(shop.levels),
            "seed": shop.seed,
            "size": shop.size,
            "skew": shop.skew,
            **asdict(shop.shares),
            "effects": "usual" if usual else fingerprint(shop.effects.to_dict()),
        }

    def wanted(self) -> Wanted:
        return Wanted(
            DATASET,
            "product scenes",
            VERSION,
            fingerprint(DATASET, VERSION, self.said(), self.shop.effects.to_dict()),
            self.said(),
        )


def make_product_scenes(
    folder: Path | str | None = None,
    n_products: int = N_PRODUCTS,
    *,
    levels: Sequence[int] = LEVELS,
    seed: int = 0,
    size: int = 64,
    without_picture: float = 0.0,
    without_title: float = 0.0,
    without_attributes: float = 0.0,
    without_category: float = 0.0,
    in_two_places: float = 0.0,
    skew: float = 0.0,
    dirt: float = 0.0,
    effects: Effects | None = None,
    workers: int | None = None,
) -> Path:
    """Make the products of a shop with planted effects, or find those made earlier.

    Args:
        size: side of the square pictures, in pixels.
    """
    shares = Shares(without_picture, without_title, without_attributes, without_category, in_two_places, dirt)
    shop = Shop(seed, check_levels(levels), size, float(skew), shares, effects or Effects())
    parameters = _Parameters(n_products, shop)
    parameters.check()
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers were asked for", "give workers=1 or more")
    if workers is None:
        workers = 1 if n_products < _SERIAL_BELOW else available_cores()
    wanted = parameters.wanted()
    if folder is not None:
        return _made(Path(folder), parameters, wanted, workers)
    target = cache_root() / DATASET / wanted.fingerprint
    if _is_whole(target, wanted):
        return target
    with taking_turns(target):
        return _made(target, parameters, wanted, workers)


def _made(target: Path, parameters: _Parameters, wanted: Wanted, workers: int) -> Path:
    if _is_whole(target, wanted):
        return target
    refuse_strange(target, wanted)
    with atomic_folder(target) as temporary:
        _write_shop(temporary, parameters, wanted, workers)
    return target


def _is_whole(folder: Path, wanted: Wanted) -> bool:
    """Whether ``folder`` holds exactly these products, with every file in its length."""
    header = found(folder, wanted)
    return header is not None and sizes_hold(folder, header["files"].items())


def _write_shop(folder: Path, parameters: _Parameters, wanted: Wanted, workers: int) -> None:
    shop, n = parameters.shop, parameters.n_products
    for thousand in range(0, n, 1000):
        (folder / "pictures" / f"{thousand // 1000:03}").mkdir(parents=True)
    chunks = [Chunk(shop, start, min(start + _CHUNK, n), str(folder)) for start in range(0, n, _CHUNK)]
    truth = Truth(shop.tree, shop.effects)
    with (
        open(folder / PRODUCTS, "w", encoding="utf-8", newline="\n") as file,
        task("making products", n, "products") as bar,
    ):
        for made in make_chunks(chunks, workers):
            truth.add(made)
            for line in made:
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            bar.advance(len(made))
    write_json(folder / TRUTH, truth.to_dict())
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    header = {
        "dataset": DATASET,
        "version": VERSION,
        "fingerprint": wanted.fingerprint,
        **parameters.said(),
        "files": {file.relative_to(folder).as_posix(): file.stat().st_size for file in files},
    }
    write_text(folder / MARKER, json.dumps(header, separators=(",", ":")) + "\n")


_AGAIN = "make them again with `diptych scenes --products`"


def read_product_scenes(folder: Path | str) -> Collection:
    """Read what :func:`make_product_scenes` made."""
    folder = Path(folder)
    header = read_json(folder / MARKER)
    if not isinstance(header, dict) or header.get("dataset") != DATASET:
        raise DataError(
            f"{folder / MARKER} holds no product scenes", "make them with `diptych scenes --products`"
        )
    if header.get("version") != VERSION:
        raise DataError(
            f"{folder} holds product scenes of version {header.get('version')}, this version reads {VERSION}",
            _AGAIN,
        )
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
    """"""
    lines = [value for _, value in read_jsonl(path, DataError, _AGAIN)]
    if len(lines) != expected:
        raise DataError(f"{path} holds {len(lines):,} products, {expected:,} expected", _AGAIN)
    return lines


def product_scenes(folder: Path | str | None = None, n_products: int = 2000, **options: Any) -> Collection:
    """Make the products, or find them in the cache, and read them.

    Arguments are as in :func:`make_product_scenes`.
    """
    return read_product_scenes(make_product_scenes(folder, n_products, **options))
