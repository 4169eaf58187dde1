"""Collections read once into columns on disk, and opened from there the next time.

What is stored of a dataset is its ids, captions and splits and where its images are, never a pixel.
It lies in the cache folder under a name made of everything it depends on; half of it is never seen.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import CaptionError, DataError, StorageError
from diptych.core.files import atomic_folder, cache_root
from diptych.core.locking import cached
from diptych.core.reading import file_errors
from diptych.data.collection import Centric, Collection, ImageSource, Shares
from diptych.data.columns import Labels, NumberTable, StringTable, StringWriter
from diptych.data.readers.contract import checked_caption

_MOST_SPLITS = 256
_BUFFER_BYTES = 1 << 18


def file_state(file: Path) -> tuple[str, int, int]:
    """Return what changes when a file does, without reading it."""
    with file_errors(file, DataError, "fetch it again"):
        state = file.stat()
    return str(file.resolve()), state.st_size, state.st_mtime_ns


@dataclass(frozen=True)
class Columns(Artifact, kind="columns"):
    """The sizes and the notes of columns on disk."""

    images: int
    captions: int
    places: int
    splits: list[str]
    notes: list[str]


class StoredWriter:
    """Writes a dataset's images one at a time, until ``files`` are closed."""

    def __init__(self, folder: Path, files: ExitStack, places: int, texts: Sequence[str] = ()) -> None:
        self.notes: list[str] = []  # of the collection
        self.n_images = 0  # so far
        self._folder, self._places = folder, places
        self._n_captions = 0
        self._splits: dict[str, int] = {}
        self._ids, self._captions, self._caption_ids, *self._texts = (
            StringWriter(folder / name, files) for name in ("image_ids", "captions", "caption_ids", *texts)
        )
        self._caption_image, self._place, self._split = (
            files.enter_context(open(folder / name, "wb", _BUFFER_BYTES))  # noqa: SIM115
            for name in ("caption_image.i8", "places.i8", "splits.u1")
        )

    def add(
        self,
        image_id: str,
        split: str,
        captions: Sequence[str],
        place: Sequence[int],
        texts: Sequence[str] = (),
    ) -> None:
        code = self._splits.setdefault(split, len(self._splits))
        if code >= _MOST_SPLITS:
            raise DataError(f"more than {_MOST_SPLITS} splits, the last: {split!r}", "name one for all")
        self._ids.add(image_id)
        for position, caption in enumerate(captions):
            self._captions.add(caption)
            self._caption_ids.add(f"{image_id}#{position}")
            self._caption_image.write(self.n_images.to_bytes(8, "little"))
        self._n_captions += len(captions)
        self._place.write(b"".join(number.to_bytes(8, "little", signed=True) for number in place))
        self._split.write(bytes([code]))
        for writer, text in zip(self._texts, texts, strict=True):
            writer.add(text)
        self.n_images += 1

    def write_header(self) -> None:
        columns = Columns(self.n_images, self._n_captions, self._places, list(self._splits), self.notes)
        columns.save(self._folder / Columns.marker())


@dataclass(kw_only=True)
class Indexer:
    """Writes what a dataset's files hold and counts what is left out."""

    writer: StoredWriter
    missing: str  # "skip" leaves out what has no image or no caption
    skip_bad_captions: bool

    def __post_init__(self) -> None:
        self.counts = Counter[str]()
        self.first = ""

    def miss(self, what: str, where: str) -> None:
        """Count something that is not there; the first is named in messages."""
        self.counts[what] += 1
        self.first = self.first or where

    def captions(self, texts: Iterable[tuple[str, str]]) -> list[str]:
        """Return the captions of an image, of texts and their names, without bad ones where that was requested."""
        captions = []
        for text, name in texts:
            try:
                captions.append(checked_caption(text, name))
            except CaptionError:
                if not self.skip_bad_captions:
                    raise
                self.counts["empty captions left out"] += 1
        return captions

    def note(self, *kinds: str) -> None:
        self.writer.notes += [f"{self.counts[kind]:,} {kind}" for kind in kinds if self.counts[kind]]


class Stored:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._header = header = Columns.open(folder)
        self.places: NumberTable = NumberTable(folder / "places.i8", header.places, header.images)
        self._codes = np.fromfile(folder / "splits.u1", dtype=np.uint8)

    def check(self, texts: Sequence[str] = ()) -> None:
        n_images, n_captions = self._header.images, self._header.captions
        NumberTable(self._folder / "caption_image.i8", 1, n_captions)
        sizes = {"captions": n_captions, "caption_ids": n_captions} | dict.fromkeys(
            ["image_ids", *texts], n_images
        )
        held = [(name, len(self.texts(name)), size) for name, size in sizes.items()]
        for name, found, size in (*held, ("splits", len(self._codes), n_images)):
            if found != size:
                raise StorageError(f"{self._folder} has {found:,} {name}, {size:,} expected", "delete it")
        if n_images and int(self._codes.max()) >= len(self._header.splits):
            raise StorageError(f"{self._folder} names a split that is none", "delete it")

    def texts(self, name: str) -> StringTable:
        return StringTable(self._folder / name)

    def collection(
        self,
        name: str,
        source: ImageSource,
        records: Sequence[Mapping[str, Any]] | None = None,
        centric: Centric | None = None,
        shares: Shares | None = None,
    ) -> Collection:
        n_images = self._header.images
        return Collection(
            name=name,
            image_ids=self.texts("image_ids"),
            captions=self.texts("captions"),
            caption_ids=self.texts("caption_ids"),
            caption_image=np.fromfile(self._folder / "caption_image.i8", dtype="<i8"),
            splits=Labels(self._header.splits, self._codes),
            source=source,
            source_rows=np.arange(n_images, dtype=np.int64),
            records=records,
            notes=tuple(self._header.notes),
            centric=centric,
            shares=shares,
        )


def stored(key: str, write: Callable[[StoredWriter], None], places: int, texts: Sequence[str] = ()) -> Stored:
    """Return the columns stored under ``key``; written first when they are not there, or are corrupt.

    Processes that ask for the same key at the same time write it once.
    """

    def read(folder: Path) -> Stored:
        found = Stored(folder)
        found.check(texts)
        return found

    def make(folder: Path) -> None:
        with atomic_folder(folder) as temporary, ExitStack() as files:
            writer = StoredWriter(temporary, files, places, texts)
            write(writer)
            writer.write_header()

    return cached(cache_root() / "collections" / key, read, make)
