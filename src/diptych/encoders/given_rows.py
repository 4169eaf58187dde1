"""Rows made elsewhere: matched with a collection by id, used like an encoder's; new items cannot be encoded.

::

    FOLDER/
      img_embs.parquet   text_embs.parquet     columns id, emb (the layout of Nguyen et al. 2024)
    or
      images.npy  images.txt  texts.npy  texts.txt     (n, d) numbers, and one id per line
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import map_array, read_text
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder, unit_rows
from diptych.metrics.products import cosine_rows

_NAMES = {"image": ("img_embs", "images"), "text": ("text_embs", "texts")}


def is_folder_of_rows(folder: Path) -> bool:
    return all(_file(folder, kind) is not None for kind in _NAMES)


def _file(folder: Path, kind: str) -> Path | None:
    parquet, plain = _NAMES[kind]
    for file in (folder / f"{parquet}.parquet", folder / f"{plain}.npy"):
        if file.is_file():
            return file
    return None


@dataclass(frozen=True, eq=False)
class _Table:
    rows: np.ndarray
    place: dict[str, int]  # of each id

    def take(self, ways: Sequence[Sequence[str]], kind: str, source: Path) -> np.ndarray:
        """Return (n,) places of a collection's items, by the first of the ways of naming them that fits."""
        for ids in ways:
            if all(name in self.place for name in ids):
                return np.array([self.place[name] for name in ids], dtype=np.int64)
        missing = [name for name in ways[0] if name not in self.place]
        example = next(iter(self.place), "none")
        raise MismatchError(
            f"{source} has no row for {kind} {missing[0]!r} ({len(missing):,} are missing); "
            f"its ids look like {example!r}",
            "give the data that these rows were made from",
        )


class GivenRows(DualEncoder):
    """A folder of rows in an encoder's place; rows are divided by their length, a zero row stays zero."""

    family: ClassVar[str] = "rows"

    def __init__(self, folder: Path, images: _Table, texts: _Table) -> None:
        self.folder: Path = folder
        self.name: str = folder.name
        self._images, self._texts = images, texts

    @classmethod
    def open(cls, folder: Path | str, device: str | None = None) -> Self:
        folder = Path(folder).expanduser()
        tables = []
        for kind, names in _NAMES.items():
            file = _file(folder, kind)
            if file is None:
                fix = f"expected {names[0]}.parquet, or {names[1]}.npy and .txt"
                raise UsageError(f"{folder} has no rows of {kind}s", fix)
            tables.append(_parquet(file) if file.suffix == ".parquet" else _plain(file))
        image, text = (table.rows.shape[1] for table in tables)
        if image != text:
            message = f"{folder}: images have rows of width {image}, captions of {text}"
            raise StorageError(message, "give rows that one model made")
        return cls(folder.resolve(), *tables)

    @property
    def width(self) -> int:
        return int(self._images.rows.shape[1])

    @cached_property
    def fingerprint(self) -> str:
        arrays = fingerprint_arrays({"images": self._images.rows, "texts": self._texts.rows})
        return fingerprint("rows", arrays, list(self._images.place), list(self._texts.place))

    def _about(self) -> dict[str, Any]:
        return {"normalisation": "unit length"}

    def blocks(
        self, collection: Collection, kind: str, blocks: Iterable[range]
    ) -> Generator[np.ndarray, None, None]:
        """Yield unit rows of blocks of a collection's images or captions (``image``, ``text``), in its order."""
        if kind == "image":
            table, places = self._images, self._images.take(_image_names(collection), "image", self.folder)
        else:
            table, places = self._texts, self._texts.take([collection.caption_ids], "caption", self.folder)
        for block in blocks:
            part = places[block.start : block.stop]
            rows = table.rows[part]
            if rows.dtype == np.float32 and np.isfinite(rows).all():
                yield cosine_rows(rows)  # as an evaluation of these arrays does
            else:
                yield unit_rows(rows, kind, part)

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        raise self._nothing_new("pictures")

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        raise self._nothing_new("sentences")

    def _nothing_new(self, what: str) -> UsageError:
        return UsageError(
            f"{self.folder} holds rows, no encoder: new {what} cannot be encoded",
            "give ids (diptych sparse terms, explain), or name their encoder with --model (diptych search)",
        )

    def _write(self, folder: Path) -> None:
        raise UsageError(f"{self.folder} holds rows, no encoder that could be saved")


def _image_names(collection: Collection) -> list[list[str]]:
    ids = list(collection.image_ids)
    numbers = [str(record.get("imgid")) for record in collection.records or ()]
    return [ids, *([numbers] if len(numbers) == len(ids) else []), [Path(name).stem for name in ids]]


def _table(ids: Sequence[str], rows: np.ndarray, file: Path) -> _Table:
    place = {name: row for row, name in enumerate(ids)}
    if rows.ndim != 2 or rows.dtype.kind != "f" or len(rows) != len(ids) or len(place) != len(ids):
        raise StorageError(
            f"{file}: {len(ids):,} ids ({len(place):,} different) for numbers of shape {rows.shape}, {rows.dtype}",
            "one row of floats per id, each id once",
        )
    return _Table(rows, place)


def _plain(file: Path) -> _Table:
    ids = read_text(file.with_suffix(".txt"), fix="give one id per line").splitlines()
    return _table(ids, map_array(file, fix="save it with np.save"), file)


def _parquet(file: Path) -> _Table:
    pq = require("pyarrow.parquet", "datasets", "reading Parquet files")
    arrow = require("pyarrow", "datasets", "reading Parquet files")
    try:
        table = pq.read_table(file, columns=["id", "emb"])
        lists = table.column("emb").combine_chunks().cast(arrow.large_list(arrow.float32()))
    except (OSError, ValueError, KeyError, NotImplementedError) as error:  # pyarrow's errors are of these
        raise StorageError(
            f"{file} cannot be read: {error}", "expected columns id and emb, one list of floats per id"
        ) from None
    if len(set(np.diff(lists.offsets.to_numpy()).tolist())) != 1:
        raise StorageError(
            f"{file}: column emb holds {len(lists)} rows, not of one length", "expected lists of one length"
        )
    rows = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1)
    return _table([str(name) for name in table.column("id").to_pylist()], rows, file)
