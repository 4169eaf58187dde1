"""Images and their captions, gathered image by image: what readers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import CaptionError, DataError
from diptych.data.captions import checked_caption
from diptych.data.collection import Centric, Collection, ImageSource
from diptych.data.images import FolderSource


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
