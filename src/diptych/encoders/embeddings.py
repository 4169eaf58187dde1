"""Embeddings: rows on disk, memory-mapped, with their ids and where they came from; dense, and bags of weighted terms.

::

    FOLDER/rows.npy              (n, d) float32; of bags of terms indptr.npy, indices.npy and weights.npy
    FOLDER/ids.utf8, ids.ends    one id per row; see diptych.data.columns
    FOLDER/embeddings.json       the rest
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from diptych.core.artifact import Artifact, decode
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import map_array, read_json
from diptych.data import read_collection
from diptych.data.captions import choose_captions
from diptych.data.collection import Collection
from diptych.data.columns import StringTable, write_strings

_CHECK_ROWS = 65_536
_HELD_IDS = 65_536  # up to so many are read when embeddings are opened


@dataclass(frozen=True, eq=False)
class Embeddings(
    Artifact, kind="embeddings", version=3, recreate="diptych embed MODEL", mapped=("rows",), files=("ids",)
):
    """(n, d) float32 rows with one id each."""

    ids: Sequence[str]  # one unique id per row
    rows: np.ndarray  # (n, d) float32, usually unit length, usually memory-mapped
    encoder: str  # fingerprint of the weights and preprocessing that made them
    data: str  # fingerprint of what was encoded
    kind: str  # "image" or "text"
    about: dict[str, Any]  # further metadata (dataset, split, counts)
    similarity: str = "cosine"  # how images and texts are compared: "cosine" (of unit rows) or "order"

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or len(self.rows) != len(self.ids):
            raise DataError(f"{len(self.ids)} ids for rows of shape {self.rows.shape}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        return int(self.rows.shape[1])

    def check_finite(self) -> None:
        """Read every row once, in blocks; raise NumericalError, with the id, for NaN or infinity."""
        for start in range(0, len(self), _CHECK_ROWS):
            bad = np.flatnonzero(~np.isfinite(self.rows[start : start + _CHECK_ROWS]).all(axis=1))
            if len(bad):
                row = start + int(bad[0])
                raise NumericalError(
                    f"{self.kind} embedding {self.ids[row]!r} (row {row}) is not finite",
                    "the encoder diverged: train it again with a lower learning rate",
                )

    def select(self, ids: Sequence[str], source: str = "", fix: str = "") -> Self:
        """Return the embeddings of ``ids`` in that order; where some are missing, MismatchError names ``source``."""
        if list(self.ids) == list(ids):
            return self
        places = {name: place for place, name in enumerate(self.ids)}
        missing = [name for name in ids if name not in places]
        if missing:
            counts = f"{len(missing):,} of {len(ids):,} are missing"
            raise MismatchError(f"{source} has no row for {self.kind} {missing[0]!r} ({counts})", fix)
        return replace(self, ids=list(ids), rows=self.rows[[places[name] for name in ids]])

    def write_files(self, folder: Path) -> None:
        write_strings(folder / "ids", self.ids)

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Read the ids into a list; of very many, each on access."""
        table = StringTable(folder / "ids")
        return {"ids": table if len(table) > _HELD_IDS else list(table)}


@dataclass(frozen=True, eq=False)
class EncodedCollection(
    Artifact,
    kind="embedded_collection",
    recreate="diptych embed MODEL",
    mapped=("caption_image",),
    parts=("images", "texts"),
):
    """A collection as embeddings: images, captions, and which describes which."""

    images: Embeddings  # one row per image
    texts: Embeddings  # one row per caption
    caption_image: np.ndarray  # (n_captions,) int64, the image of each caption
    about: dict[str, Any]  # metadata of evaluations: dataset, split, encoder

    def __post_init__(self) -> None:
        for what in ("encoder", "similarity"):
            image, text = getattr(self.images, what), getattr(self.texts, what)
            if image != text:
                raise StorageError(
                    f"images and captions were embedded with different values of {what}: {image} and {text}",
                    "embed both again",
                )

    @property
    def similarity(self) -> str:
        return self.images.similarity

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Memory-map what :func:`~diptych.encoders.encode.encode_collection` wrote."""
        if not cls.is_at(path) and any(Path(path).glob("*.unfinished")):
            raise StorageError(f"{path} is not finished", "resume with the command that began it")
        return super().open(path, of)


ORIGIN_FILE = "origin.json"


@dataclass(frozen=True)
class Origin:
    """Hold the provenance of embeddings, so that a search can show what it found."""

    model: str  # the run or encoder, as it was named
    data: dict[str, Any]  # the recipe's data section
    split: str | None  # the part that was embedded; None for all
    captions: str = "all"  # which captions of each image, as --captions takes it
    centric: str | None = None  # what the images show, scene or object; None where it is unknown

    @property
    def part(self) -> str:
        chosen = "" if self.captions == "all" else f"-{self.captions.replace(':', '-')}"
        return f"{self.split or 'all'}{chosen}"

    def collection(self) -> Collection:
        collection = read_data(self.data)
        part = collection if self.split is None else collection.split(self.split)
        return choose_captions(part, self.captions)

    def protocol(self) -> dict[str, str]:
        """Return the lines of a protocol that dataset and split do not give."""
        captions = {} if self.captions == "all" else {"captions": self.captions}
        return captions if self.centric is None else {"pictures": f"{self.centric}-centric", **captions}

    @classmethod
    def from_dict(cls, content: Any, where: Path | str) -> Self:
        try:
            return decode(cls, content, {})  # type: ignore[no-any-return]
        except (TypeError, ValueError):
            raise StorageError(
                f"{where} does not say which encoder and data it was made of", "recreate it"
            ) from None

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        file = folder / ORIGIN_FILE
        return cls.from_dict(read_json(file), file) if file.is_file() else None


def read_data(section: Mapping[str, Any]) -> Collection:
    if section.get("scenes") is not None:
        from diptych.data.scenes import scenes

        return scenes(**section["scenes"])
    if section.get("path") is None:
        raise UsageError("the recipe names no data", "give a dataset with --data")

    collection = read_collection(section["path"], section.get("reader"), **(section.get("options") or {}))
    if section.get("skip_bad_images"):
        from diptych.encoders.encode import without_bad_images

        collection, problems = without_bad_images(collection)
        if problems:
            note = f"{len(problems)} pictures that cannot be read are left out, the first: {problems[0]}"
            collection = replace(collection, notes=(*collection.notes, note))
    return collection


def check_still_there(model: str, made: Path | str) -> None:
    """Refuse a folder whose model is not where it was."""
    place = Path(model.rpartition(":")[2])  # without the family's name
    if place.is_absolute() and not place.exists():
        raise UsageError(
            f"{made} was made with {model}, which is not there any more",
            "put it back, or recreate what was made with it from where it is now",
        )


_ARRAYS = {"indptr": np.int64, "indices": np.int32, "weights": np.float32}


def term_fingerprint(terms: Sequence[str]) -> str:
    """Return the name by content of a vocabulary: the terms in their order."""
    return fingerprint(list(terms))


def canonical_rows(rows: Any, what: str = "sparse") -> csr_array:
    """Return a ``csr_array`` of float32: columns ascending and once, no stored zeros, int32 indices up to 2**31."""
    if np.ndim(rows) != 2 and getattr(rows, "ndim", 2) != 2:
        raise DataError(f"{what} vectors must have shape (n, terms), got {np.shape(rows)}")
    matrix = csr_array(rows)
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{what} vectors must be real numbers, got {matrix.dtype}")
    matrix = matrix.astype(np.float32, copy=False)
    if not matrix.has_canonical_format or np.any(matrix.data == 0):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise NumericalError(
            f"{what} vector (row {row}) is not finite", "the head diverged: train it with a lower rate"
        )
    return canonical_array(matrix.data, matrix.indices, matrix.indptr, matrix.shape)


def canonical_array(
    weights: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> csr_array:
    """Return a canonical array; SciPy wants one type for columns and row starts, and copies when they differ."""
    kind = np.int32 if len(weights) <= np.iinfo(np.int32).max else np.int64
    parts = (weights, indices.astype(kind, copy=False), indptr.astype(kind, copy=False))
    rows = csr_array(parts, shape=shape, copy=False)
    rows.has_canonical_format = True  # known; SciPy would read every row to find out
    return rows


@dataclass(frozen=True, eq=False)
class SparseEmbeddings(
    Artifact, kind="sparse_embeddings", version=2, recreate="diptych sparse train", files=("ids", "rows")
):
    """(n, |V|) rows of term weights with one id each; a row may be empty."""

    ids: Sequence[str]  # one unique id per row
    rows: csr_array  # canonical csr_array of float32, see :func:`canonical_rows`; usually memory-mapped
    terms: Sequence[str]  # the vocabulary, one term per column
    encoder: str  # fingerprint of what made them: dense encoder, head and vocabulary
    data: str  # fingerprint of what was encoded
    kind: str  # "image" or "text"
    about: dict[str, Any]  # whatever else should travel with them (dataset, split, options of the head)

    def __post_init__(self) -> None:
        sizes = len(self.ids), len(self.terms)
        if self.rows.shape != sizes:
            raise DataError(f"{sizes[0]} ids and {sizes[1]} terms for rows of shape {self.rows.shape}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        return len(self.terms)

    @cached_property
    def vocabulary(self) -> str:
        return term_fingerprint(self.terms)

    def write_files(self, folder: Path) -> None:
        write_strings(folder / "ids", self.ids)
        arrays = {"indptr": self.rows.indptr, "indices": self.rows.indices, "weights": self.rows.data}
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", np.ascontiguousarray(array, dtype=_ARRAYS[name]))

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        arrays = {}
        for name, kind in _ARRAYS.items():
            # Plain views: slicing np.memmap objects costs microseconds each.
            arrays[name] = np.asarray(map_array(folder / f"{name}.npy"))
            if arrays[name].dtype != kind or arrays[name].ndim != 1:
                raise ValueError(f"{name}.npy holds {arrays[name].dtype} of shape {arrays[name].shape}")
        weights, indices, indptr = arrays["weights"], arrays["indices"], arrays["indptr"]
        ids, width = list(StringTable(folder / "ids")), len(content["terms"])
        if len(indptr) != len(ids) + 1 or not len(weights) == len(indices) == indptr[-1]:
            raise ValueError(f"{len(indptr) - 1} rows with {len(weights)} weights for {len(ids)} ids")
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise ValueError("its row starts do not ascend")
        if len(indices) and not 0 <= indices.min() <= indices.max() < width:
            raise ValueError(f"it has columns beyond its {width} terms")
        return {"ids": ids, "rows": canonical_array(weights, indices, indptr, (len(ids), width))}
