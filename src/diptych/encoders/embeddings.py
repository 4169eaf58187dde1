"""Embeddings: rows on disk, memory-mapped, with their ids and where they came from.

::

    FOLDER/rows.npy              (n, d) float32
    FOLDER/ids.utf8, ids.ends    one id per row; see diptych.data.columns
    FOLDER/embeddings.json       the rest
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from diptych.core.artifact import Artifact, decode
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError, UsageError
from diptych.core.reading import read_json
from diptych.data.columns import StringTable, write_strings

if TYPE_CHECKING:
    from diptych.data.collection import Collection


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

    def select(self, ids: Sequence[str], source: str = "", fix: str = "") -> Embeddings:
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
        """Read the ids into a list; of very many, each when it is asked for."""
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
    """Where embeddings came from, so that a search can show what it found."""

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
        from diptych.data.captions import choose_captions

        collection = read_data(self.data)
        part = collection if self.split is None else collection.split(self.split)
        return choose_captions(part, self.captions)

    def protocol(self) -> dict[str, str]:
        """Return the lines of a protocol that dataset and split do not give."""
        captions = {} if self.captions == "all" else {"captions": self.captions}
        return captions if self.centric is None else {"pictures": f"{self.centric}-centric", **captions}

    @classmethod
    def from_dict(cls, content: Any, where: Path | str) -> Origin:
        try:
            return decode(cls, content, {})  # type: ignore[no-any-return]
        except (TypeError, ValueError):
            raise StorageError(
                f"{where} does not say which encoder and data it was made of", "make it again"
            ) from None

    @classmethod
    def read(cls, folder: Path) -> Origin | None:
        file = folder / ORIGIN_FILE
        return cls.from_dict(read_json(file), file) if file.is_file() else None


def read_data(section: Mapping[str, Any]) -> Collection:
    if section.get("scenes") is not None:
        from diptych.data.scenes import scenes

        return scenes(**section["scenes"])
    if section.get("path") is None:
        raise UsageError("the recipe names no data", "give a dataset with --data")
    from diptych.data import read_collection

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
            "put it back, or make what was made with it again from where it is now",
        )
