"""Reading product scenes as a Collection, the truth of every product included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError
from diptych.core.reading import read_json, read_jsonl
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.products import plain_text
from diptych.data.scenes.products.columns import DATASET, MARKER, PRODUCTS, VERSION
from diptych.data.scenes.products.make import make_product_scenes

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
