"""Images and their captions, or products, gathered one by one: what readers share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.data.captions import MAX_CHARACTERS, assigned_split, checked_caption
from diptych.data.collection import Centric, Collection, ImageSource
from diptych.data.images import PICTURE_ENDINGS, FolderSource
from diptych.data.products import MAX_LEVELS, paths_of, picture_name, plain_text


class Gathering:
    """A collection in the making."""

    def __init__(self, skip_bad_captions: bool) -> None:
        self._skip = skip_bad_captions
        self._skipped = 0
        self.names: list[str] = []
        self._splits: list[str] = []
        self._records: list[Mapping[str, Any] | None] = []
        self._captions: list[str] = []
        self._caption_ids: list[str] = []
        self._caption_image: list[int] = []
        self._caption_records: list[Mapping[str, Any]] = []

    def checked(self, text: str, where: str) -> str | None:
        """Return a caption as it is kept; None for an empty one where those are left out, and counted."""
        try:
            return checked_caption(text, where)
        except CaptionError:
            if not self._skip:
                raise
            self._skipped += 1
            return None

    def add(
        self,
        name: str,
        split: str,
        texts: Iterable[str],
        record: Mapping[str, Any] | None = None,
        ids: Iterable[str] | None = None,
        said_in: str = "",
        caption_records: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Add an image with its captions; without ``ids`` they are ``NAME#0``, ``NAME#1``, …."""
        row = len(self.names)
        self.names.append(name)
        self._splits.append(split)
        self._records.append(record)
        texts, told = list(texts), list(caption_records)
        named = [f"{name}#{i}" for i in range(len(texts))] if ids is None else list(ids)
        for place, (text, identifier) in enumerate(zip(texts, named, strict=True)):
            of = "" if identifier.startswith(name) else f" of {name}"
            caption = self.checked(text, f"{said_in}, caption {identifier}{of}")
            if caption is not None:
                self._captions.append(caption)
                self._caption_ids.append(identifier)
                self._caption_image.append(row)
                self._caption_records += told[place : place + 1]

    def collection(
        self,
        name: str,
        source: Path | ImageSource,
        centric: Centric | None,
        notes: Iterable[str] = (),
        source_rows: np.ndarray | None = None,
    ) -> Collection:
        """Return what was gathered.

        Args:
            source: where the pictures are; a folder in which they are called by the images' names.
            source_rows: (n_images,) the row of each image in the source; one after the other by default.
        """
        if len(set(self._caption_ids)) != len(self._caption_ids):
            self._caption_ids = [f"{self.names[row]}#{i}" for i, row in enumerate(self._caption_image)]
        skipped = (f"{self._skipped} empty captions left out",) if self._skipped else ()
        records = [record or {} for record in self._records]
        return Collection(
            name=name,
            image_ids=self.names,
            captions=self._captions,
            caption_ids=self._caption_ids,
            caption_image=np.asarray(self._caption_image, dtype=np.int64),
            splits=self._splits,
            source=FolderSource(source, self.names) if isinstance(source, Path) else source,
            source_rows=np.arange(len(self.names)) if source_rows is None else source_rows,
            records=None if all(record is None for record in self._records) else records,
            caption_records=self._caption_records if self._caption_records else None,
            notes=(*notes, *skipped),
            centric=centric,
        )


def first_folder(given: Path | str | None, candidates: Iterable[Path], flag: str) -> Path | None:
    """Return the folder that was given, else the first of the candidates that is there; None where none is."""
    if given is not None:
        folder = Path(given)
        if not folder.is_dir():
            what = "image folder" if flag == "--images" else "folder"
            raise DataError(f"the {what} {folder} does not exist", f"check {flag}")
        return folder
    return next((folder for folder in candidates if folder.is_dir()), None)


def image_folder(given: Path | str | None, beside: Path) -> Path:
    """Return the folder of pictures: as given, else ``images/`` in a folder, else that folder itself."""
    return first_folder(given, (beside / "images",), "--images") or beside


MISSING = ("none", "error", "skip")
"""What becomes of a product without a picture: kept without one, an error, left out."""


def check_missing(missing: str) -> None:
    """See that an option ``missing`` is one of :data:`MISSING`."""
    if missing not in MISSING:
        raise UsageError(f"missing is {missing!r}", f"one of {', '.join(MISSING)}")


def picture_folder(given: Path | str | None, beside: Path) -> Path:
    """Return the folder of pictures: as given, else ``images/`` beside the data, which need not be there."""
    if given is None:
        return beside / "images"
    folder = Path(given)
    if not folder.is_dir():
        raise DataError(f"the image folder {folder} does not exist", "check --images")
    return folder


def find_pictures(
    folder: Path, ids: Sequence[str], missing: Literal["none", "error", "skip"] = "none"
) -> tuple[FolderSource, np.ndarray, list[str]]:
    """Return the picture file of each product.

    A file is a product's when its name without the ending is :func:`~diptych.data.products.picture_name` of the id, or
    else the id itself (if that holds no ``~``: it could be the name of another one's picture); of several endings the
    first in alphabetical order counts.

    Returns:
        The pictures that were found, (n,) int64 the row of each product's picture among them or -1, and notes.
    """
    files: dict[str, str] = {}
    if folder.is_dir():
        with os.scandir(folder) as entries:
            for entry in entries:
                stem, _, ending = entry.name.rpartition(".")
                if stem and ending.lower() in PICTURE_ENDINGS and entry.name < files.get(stem, "\U0010ffff"):
                    files[stem] = entry.name
    rows = np.full(len(ids), -1, dtype=np.int64)
    names: list[str] = []
    lost: list[str] = []
    for place, product in enumerate(ids):
        name = files.get(picture_name(product)) or (files.get(product) if "~" not in product else None)
        if name is None:
            lost.append(product)
        else:
            rows[place] = len(names)
            names.append(name)
    if lost and missing == "error":
        raise DataError(
            f"{len(lost):,} of {len(ids):,} products have no picture in {folder}, the first: {lost[0]}",
            "fetch them with diptych categories download, or keep them without one with --reader-option missing=none",
        )
    what = "left out" if missing == "skip" else "kept without one"
    notes = (
        [f"{len(lost):,} of {len(ids):,} products have no picture in {folder.name}/: {what}"] if lost else []
    )
    return FolderSource(folder, names), rows, notes


DUPLICATES = ("merge", "first", "error")
"""What becomes of a product that is listed again: its category paths join the first's, it is left out, an error."""

_MAX_ID = 200
_SHORT = 24


def short_text(value: Any) -> str:
    """Return one line of plain text, of the first :data:`~diptych.data.captions.MAX_CHARACTERS` characters at most."""
    return "" if value is None else plain_text(str(value)[:MAX_CHARACTERS])


class ProductGathering:
    """A collection of products in the making: a picture or none, and the title as the caption or none."""

    def __init__(self, duplicates: str, fix: str = "--reader-option duplicates=first") -> None:
        if duplicates not in DUPLICATES:
            raise UsageError(f"duplicates is {duplicates!r}", f"one of {', '.join(DUPLICATES)}")
        self._duplicates, self._fix = duplicates, fix
        self._rows: dict[str, int] = {}
        self._records: list[dict[str, Any]] = []
        self._groups: list[str] = []
        self._places: list[str] = []
        self._known: dict[Any, Any] = {}
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, product: str, record: dict[str, Any], where: str, group: str = "") -> None:
        """One product."""
        if not product or len(product) > _MAX_ID or plain_text(product) != product:
            raise DataError(
                f"{where}: {product[:40]!r} is no id of a product",
                f"an id is one line of at most {_MAX_ID} characters",
            )
        paths = paths_of(record)
        deepest = max(map(len, paths), default=0)
        if deepest > MAX_LEVELS:
            raise DataError(
                f"{where}: the category of {product} has {deepest:,} levels, more than {MAX_LEVELS}",
                "check what stands between the names",
            )
        row = self._rows.get(product)
        if row is None:
            self._rows[product] = len(self._records)
            self._records.append(self._kept(record, paths))
            self._groups.append(group or product)
            self._places.append(where)
        elif self._duplicates == "error":
            raise DataError(f"{where}: product {product} was in {self._places[row]} already", self._fix)
        elif self._duplicates == "first":
            self.counts["lines that list a product again left out"] += 1
        else:
            known = self._records[row]
            both = tuple(dict.fromkeys((*paths_of(known), *paths)))
            self._records[row] = self._kept(known, both)
            self.counts["lines that list a product again: their category paths joined its first line's"] += 1

    def _kept(self, record: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
        """The record with these paths, one as ``category_path`` and several as ``category_paths``; no empty values.

        Many products say the same: paths, names and short values are held once.
        """
        kept = {key: value for key, value in record.items() if value and not key.startswith("category_path")}
        if "attributes" in kept:
            kept["attributes"] = {
                self._once(name): self._once(values[0])
                if len(values) == 1
                else tuple(self._once(value) for value in values)
                for name, values in _lists(kept["attributes"])
            }
        if len(paths) == 1:
            kept["category_path"] = self._known.setdefault(paths[0], paths[0])
        elif paths:
            kept["category_paths"] = self._known.setdefault(paths, paths)
        return kept

    def _once(self, text: str) -> str:
        return str(self._known.setdefault(text, text)) if len(text) <= _SHORT else text

    def collection(
        self,
        name: str,
        pictures: Path,
        *,
        missing: Literal["none", "error", "skip"],
        validation: float,
        test: float,
        notes: tuple[str, ...] = (),
    ) -> Collection:
        """Return what was gathered."""
        ids = list(self._rows)
        source, rows, said = find_pictures(pictures, ids, missing)
        kept = np.flatnonzero(rows >= 0) if missing == "skip" else np.arange(len(ids))
        if not len(kept):
            raise DataError(
                f"{name} has no products" + (f" with a picture in {pictures}" if ids else ""),
                "keep those without a picture with --reader-option missing=none"
                if ids
                else "fetch the file again",
            )
        chosen = kept.tolist()
        captions: list[str] = []
        whose: list[int] = []
        for place, row in enumerate(chosen):
            title = self._records[row].get("title", "")
            if any(character.isalnum() for character in title):
                captions.append(title)
                whose.append(place)
        untitled = len(chosen) - len(captions)
        if untitled:
            said.append(f"{untitled:,} products have no title, and so no caption")
        counted = [f"{count:,} {what}" for what, count in sorted(self.counts.items())]
        return Collection(
            name=name,
            image_ids=[ids[row] for row in chosen],
            captions=captions,
            caption_ids=[f"{ids[chosen[place]]}#0" for place in whose],
            caption_image=np.asarray(whose, dtype=np.int64),
            splits=[assigned_split(self._groups[row], validation, test) for row in chosen],
            source=source,
            source_rows=rows[kept],
            records=[self._records[row] for row in chosen],
            notes=(*notes, *said, *counted),
            centric="object",
        )


def _lists(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    for name, values in attributes.items():
        given = (values,) if isinstance(values, str) else tuple(values)
        if given:
            yield name, given


def named_columns(
    columns: Iterable[str],
    given: Mapping[str, str | None],
    known: Mapping[str, Sequence[str]],
    where: object,
) -> list[str]:
    """Return the column of each kind, named or known; all that are missing are named in one message."""
    there = list(map(str, columns))
    wanted = {what: (name,) if name else known[what] for what, name in given.items()}
    found = {what: [name for name in names if name in there] for what, names in wanted.items()}
    if missing := [what for what, names in found.items() if not names]:
        texts = [f"no {what} column" + (f" {given[what]!r}" if given[what] else "") for what in missing]
        flags = " ".join(f"--reader-option {what}_column=NAME" for what in missing)
        fix = f"its columns: {', '.join(there)}; name them with {flags}"
        raise UsageError(f"{where} has {' and '.join(texts)}", fix)
    return [names[0] for names in found.values()]
