"""What makes rows of product pictures, and how it is asked for in one line."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.context import track
from diptych.core.errors import ImageError, MismatchError
from diptych.core.options import Options
from diptych.core.registry import Registry
from diptych.data.loading import NO_PICTURE, batched, read_ahead
from diptych.encoders.row_store import keyed_rows, release_pages, text_keys
from diptych.encoders.targets import TargetModel

Precision = Literal["float32", "bfloat16"]

_OTHERWISE = "dual"


class PictureEncoder(ABC):
    """Pictures to unit rows; frozen.

    Attributes:
        kind: its name in the registry.
        source: what :func:`make_picture_encoder` takes to make it again.
        options: as they were given, checked and JSON-able.
    """

    kind: ClassVar[str]
    source: str
    options: dict[str, Any]

    @property
    @abstractmethod
    def width(self) -> int:
        """Length of a row."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that a row depends on besides the picture."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What has to be printed beside its numbers, JSON-able."""

    @abstractmethod
    def prepared(self, item: Any, name: str) -> Any:
        """What can be done to one picture before the network; called from several threads at once."""

    @abstractmethod
    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows of what :meth:`prepared` gave."""

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        """What an item is."""
        return "pictures"

    @property
    def texts(self) -> TargetModel | None:
        """Its own text side, whose rows can be compared with its rows of pictures; None without one."""
        return None


class NoOptions(Options):
    """Of kinds that have none."""


@dataclass(frozen=True)
class PictureKind:
    """A way to make rows of pictures.

    Attributes:
        name: what its source begins with.
        form: how its source is written, for help texts.
        description: one line.
        citation: where it is from.
        options: what it can be told besides.
        make: from what follows ``NAME:`` in the source, the checked options and the precision.
    """

    name: str
    form: str
    description: str
    citation: str
    options: type[Options]
    make: Callable[[str, Any, Precision], PictureEncoder]


PICTURES: Registry[PictureKind] = Registry(
    "kind of picture encoder", "diptych.commerce.category_to_image.features.pictures.kinds"
)


def make_picture_encoder(
    source: str, options: Mapping[str, Any] | None = None, precision: Precision = "float32"
) -> PictureEncoder:
    """The encoder that a source asks for: ``grid``, ``backbone:NAME``, or whatever ``DualEncoder.load`` takes."""
    name, _, rest = source.partition(":")
    known = name in PICTURES.names() and name != _OTHERWISE
    kind = PICTURES.get(name if known else _OTHERWISE)
    checked = kind.options.read(dict(options or {}), f"image options of {source}")
    return kind.make(rest if known else source, checked, precision)


# Rows of a catalogue's pictures: each picture once, whatever catalogue or split it is asked for with.
#
# Rows are kept under the fingerprint of the picture's bytes (:mod:`diptych.encoders.row_store`): a product that has
# the picture of another, a split, or a shop with new products only computes what was not there.


logger = logging.getLogger(__name__)

Missing = Literal["error", "none"]
"""What to do about a product without a picture that can be read: stop, or give it a row of zeros."""

_BATCH = 64
_LOOK = 8192


@dataclass(frozen=True, eq=False)
class PictureRows:
    """Rows of pictures, one per product.

    Attributes:
        rows: (n, width) float32, memory-mapped; zeros where there is no picture.
        pictured: (n,) booleans: where there is one.
        without: products that have none.
        unreadable: products whose picture is missing on the disk or cannot be decoded.
    """

    rows: np.ndarray
    pictured: np.ndarray
    without: int
    unreadable: int


def picture_rows(
    encoder: PictureEncoder, catalogue: Catalogue, root: Path, missing: Missing = "error"
) -> PictureRows:
    """Rows of every product's picture."""
    collection = catalogue.collection
    if encoder.takes != collection.holds:
        raise MismatchError(
            f"the encoder takes {encoder.takes}, {catalogue.name} holds {collection.holds}",
            "choose another encoder of pictures",
        )
    absent = np.flatnonzero(catalogue.picture_rows < 0)
    if missing == "error" and len(absent):
        raise _none_there(catalogue, int(absent[0]), f"{len(absent):,} of the {len(catalogue):,} products")
    keys = text_keys(_contents(catalogue, missing))
    nothing = text_keys([NO_PICTURE])[0]
    folder = root / encoder.fingerprint

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        with_picture = np.flatnonzero(keys[places] != nothing)
        yield from _encoded(encoder, catalogue, places, with_picture, missing)
        for number in np.flatnonzero(keys[places] == nothing):
            yield np.array([number]), np.zeros((1, encoder.width), dtype=np.float32)

    rows = np.empty((0, encoder.width), dtype=np.float32)
    if len(catalogue):
        rows, _ = keyed_rows(folder, keys, encoder.width, make, doing="encoding pictures", unit="pictures")
    pictured = _not_zero(rows)
    if missing == "error" and not pictured.all():
        # Rows of zeros that a run which was told to go on without pictures left.
        raise _unreadable(catalogue, int(np.flatnonzero(~pictured)[0]), "it could not be read")
    unreadable = int((~pictured).sum()) - len(absent)
    if unreadable:
        logger.warning(
            "%d of %d pictures cannot be read: those products have none", unreadable, len(catalogue)
        )
    return PictureRows(rows, pictured, len(absent), unreadable)


def _contents(catalogue: Catalogue, missing: Missing) -> Iterator[str]:
    """A fingerprint of each product's picture; reads every file once, and holds none."""
    collection = catalogue.collection

    def content(product: int) -> str:
        row = int(catalogue.picture_rows[product])
        if row < 0:
            return NO_PICTURE
        try:
            return collection.source.content(_place(catalogue, product))
        except ImageError as error:
            if missing == "error":
                raise _unreadable(catalogue, product, error.message) from None
            logger.warning("%s", _unreadable(catalogue, product, error.message).message)
            return NO_PICTURE

    found = read_ahead(content, range(len(catalogue)))
    yield from track(found, "reading pictures", len(catalogue), "pictures")


def _place(catalogue: Catalogue, product: int) -> int:
    place = int(catalogue.collection.source_rows[catalogue.picture_rows[product]])
    if place < 0:
        raise ImageError("its item has no picture")
    return place


def _encoded(
    encoder: PictureEncoder, catalogue: Catalogue, places: np.ndarray, wanted: np.ndarray, missing: Missing
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers in ``places`` and their rows, batch by batch; pictures are read ahead in threads."""

    def prepared(number: int) -> tuple[int, Any]:
        product = int(places[number])
        try:
            item = catalogue.collection.item(int(catalogue.picture_rows[product]))
            return number, encoder.prepared(item, catalogue.ids[product])
        except ImageError as error:
            if missing == "error":
                raise _unreadable(catalogue, product, error.message) from None
            logger.warning("%s", _unreadable(catalogue, product, error.message).message)
            return number, None

    for batch in batched(read_ahead(prepared, wanted.tolist()), _BATCH):
        rows = np.zeros((len(batch), encoder.width), dtype=np.float32)
        good = [at for at, (_, item) in enumerate(batch) if item is not None]
        if good:
            names = [catalogue.ids[int(places[batch[at][0]])] for at in good]
            rows[good] = encoder.encode([batch[at][1] for at in good], names)
        yield np.array([number for number, _ in batch]), rows


def _not_zero(rows: np.ndarray) -> np.ndarray:
    some = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), _LOOK):
        some[start : start + _LOOK] = rows[start : start + _LOOK].any(axis=1)
        release_pages(rows)
    return some


def _none_there(catalogue: Catalogue, product: int, how_many: str) -> ImageError:
    return ImageError(
        f"{how_many} of {catalogue.name} have no picture, {catalogue.ids[product]!r} the first",
        "leave them out, or say that products may have none (missing='none')",
    )


def _unreadable(catalogue: Catalogue, product: int, why: str) -> ImageError:
    return ImageError(
        f"the picture of product {catalogue.ids[product]!r} cannot be used: {why}",
        "replace the file, or say that products may have no picture (missing='none')",
    )
