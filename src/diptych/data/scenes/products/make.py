"""Making a shop of product scenes, once, and finding it again.

A product depends on (seed, number, levels, size, skew, shares, effects) alone. So any number of processes makes the
same bytes, and a larger shop begins with the products of the smaller one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from diptych.core.errors import UsageError
from diptych.core.files import atomic_folder, cache_root, one_at_a_time, write_json, write_text
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task
from diptych.data.scenes.made_once import Wanted, found, refuse_strange, sizes_hold
from diptych.data.scenes.processes import available_cores
from diptych.data.scenes.products.chunks import Chunk, Shop, make_chunks
from diptych.data.scenes.products.columns import DATASET, MARKER, PRODUCTS, TRUTH, VERSION
from diptych.data.scenes.products.effects import Effects
from diptych.data.scenes.products.product import Shares
from diptych.data.scenes.products.tree import LEVELS, check_levels
from diptych.data.scenes.products.truth import Truth

__all__ = ["N_PRODUCTS", "make_product_scenes"]

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
        folder: where to; None is the cache, under a name that stands for all parameters.
        n_products: of ten, seven are to train on, one is to choose by and two are to report on.
        levels: the least and the most levels of a category path, 1 to 9.
        seed: the same seed gives the same tree and the same products.
        size: side of the square pictures, in pixels.
        without_picture: share of products that have no picture.
        without_title: share that have no title.
        without_attributes: share that have no attributes.
        without_category: share whose category is not given; where they belong is in their records all the same.
        in_two_places: share that are in a like category of another department too.
        skew: share of products that are in one category, before all others are sorted.
        dirt: share whose title and attributes hold HTML, entities and strange white space.
        effects: what is planted; None is what usually is.
        workers: processes; None takes every available core, or this process alone for few products.

    Returns:
        The folder, whole: ``dataset.json`` (what was asked for), ``products.jsonl``, ``pictures/`` and ``truth.json``
        (the tree, what is planted and what the products have of it, and how well the best possible observer does with
        each set of modalities; see :mod:`diptych.data.scenes.products.truth`).

    Raises:
        UsageError: a number is out of range, or ``folder`` holds something else.
        UnknownNameError: effects of a facet that there is not.
        StorageError: it could not be written; nothing half-made is left under its name.
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
    with one_at_a_time(target):
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
