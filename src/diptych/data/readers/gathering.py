"""Images and their captions, gathered image by image: what readers of folders and lists share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import CaptionError, DataError
from diptych.data.captions import checked_caption
from diptych.data.collection import Centric, Collection
from diptych.data.images import FolderSource


class Gathering:
    """A collection in the making; pictures are files below one folder."""

    def __init__(self, skip_bad_captions: bool) -> None:
        self._skip = skip_bad_captions
        self._skipped = 0
        self._names: list[str] = []
        self._splits: list[str] = []
        self._records: list[Mapping[str, Any]] = []
        self._captions: list[str] = []
        self._caption_ids: list[str] = []
        self._caption_image: list[int] = []

    def add(
        self,
        name: str,
        split: str,
        texts: Iterable[str],
        record: Mapping[str, Any],
        ids: Iterable[str] | None = None,
        said_in: str = "",
    ) -> None:
        """One image with its captions."""
        row = len(self._names)
        self._names.append(name)
        self._splits.append(split)
        self._records.append(record)
        texts = list(texts)
        named = [f"{name}#{i}" for i in range(len(texts))] if ids is None else list(ids)
        for text, identifier in zip(texts, named, strict=True):
            try:
                caption = checked_caption(text, f"{said_in}: caption {identifier}")
            except CaptionError:
                if not self._skip:
                    raise
                self._skipped += 1
                continue
            self._captions.append(caption)
            self._caption_ids.append(identifier)
            self._caption_image.append(row)

    def collection(
        self,
        name: str,
        folder: Path,
        centric: Centric | None,
        notes: Iterable[str] = (),
    ) -> Collection:
        """What was gathered; ``folder`` is where the pictures are."""
        skipped = (f"{self._skipped} empty captions left out",) if self._skipped else ()
        return Collection(
            name=name,
            image_ids=self._names,
            captions=self._captions,
            caption_ids=self._caption_ids,
            caption_image=np.asarray(self._caption_image, dtype=np.int64),
            splits=self._splits,
            source=FolderSource(folder, self._names),
            source_rows=np.arange(len(self._names)),
            records=self._records,
            notes=(*notes, *skipped),
            centric=centric,
        )


def first_folder(given: Path | str | None, candidates: Iterable[Path], flag: str) -> Path | None:
    """The folder that was given, else the first of the candidates that is there; None where none is."""
    if given is not None:
        folder = Path(given)
        if not folder.is_dir():
            raise DataError(f"the folder {folder} does not exist", f"check {flag}")
        return folder
    return next((folder for folder in candidates if folder.is_dir()), None)
