"""From a collection and an encoder to embeddings on disk.

Encode once: evaluation, index and analysis work on what is stored here. It is written block by block
(:mod:`row_blocks`), so that a run that was killed goes on where it stopped, and can be shared by several
processes (:mod:`processes`); the numbers are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import ImageError, Interrupted, MismatchError, StorageError, UsageError
from diptych.core.files import atomic_path, check_replaceable, read_json, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import track
from diptych.data.collection import Collection
from diptych.data.contents import each_picture_content
from diptych.data.loading import read_ahead
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.encoding import encode_blocks
from diptych.encoders.given_rows import GivenRows
from diptych.encoders.processes import encode_in_processes
from diptych.encoders.sides import HALVES, Side, sides_of

__all__ = ["EncodedCollection", "encode_collection", "without_bad_images"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class EncodedCollection:
    """A collection as embeddings: pictures, captions, and which describes which.

    Attributes:
        images: one row per picture.
        texts: one row per caption.
        caption_image: (n_captions,) int64, the picture of each caption.
        about: what evaluations print beside their numbers: dataset, split, encoder.
    """

    images: Embeddings
    texts: Embeddings
    caption_image: np.ndarray
    about: dict[str, Any]

    @property
    def similarity(self) -> str:
        """How a picture's row and a caption's row are compared: ``"cosine"`` or ``"order"``."""
        return self.images.similarity

    @classmethod
    def open(cls, folder: Path | str) -> EncodedCollection:
        """Memory-map what :func:`encode_collection` wrote.

        Raises:
            StorageError: the folder is not one, is not finished, or its two halves were made by different
                weights.
        """
        folder = Path(folder)
        if not (folder / "about.json").is_file() and any(folder.glob("*.unfinished")):
            raise StorageError(f"{folder} is not finished", "give the command that began it once more")
        about = read_json(folder / "about.json")
        images, texts = Embeddings.open(folder / "images"), Embeddings.open(folder / "texts")
        if images.encoder != texts.encoder:
            raise StorageError(
                f"{folder}: pictures were embedded by {images.encoder}, captions by {texts.encoder}",
                "embed again",
            )
        if images.similarity != texts.similarity:
            raise StorageError(
                f"{folder}: pictures are compared by {images.similarity}, captions by {texts.similarity}",
                "embed again",
            )
        caption_image = np.load(folder / "caption_image.npy", mmap_mode="r", allow_pickle=False)
        return cls(images, texts, caption_image, about)


def encode_collection(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,
    split: str | None = None,
    *,
    processes: int = 1,
    accelerator: str = "auto",
    should_stop: Callable[[], bool] = lambda: False,
) -> EncodedCollection:
    """Embed pictures and captions into ``folder``, or open what is there when it is the same.

    "The same" is: the same encoder fingerprint, ids, captions and bytes of pictures. Of the same, what an
    interrupted call had finished is used.

    Args:
        encoder: makes the rows.
        collection: all of it is embedded; take a split first.
        folder: ``images/``, ``texts/``, ``caption_image.npy`` and ``about.json`` are written to it.
        split: what to call the part in ``about``.
        processes: that share the work, each with an encoder of its own; on graphics cards one per card.
            A script that asks for more than one needs ``if __name__ == "__main__":``.
        accelerator: of several processes: ``cpu``, ``cuda`` or ``auto``; one uses the encoder as it is.
        should_stop: asked after every block.

    Raises:
        Interrupted: ``should_stop`` said so; the same call goes on.
        UsageError: ``processes`` that the machine does not have, or a folder that holds other things.
        MismatchError: an encoder of pictures and a collection of region features, or the other way round.
        ImageError: a picture cannot be read; the message names it.
        NumericalError: a row is not finite.
        StorageError: the write failed.
    """
    folder = Path(folder)
    if processes < 1:
        raise UsageError(f"{processes} processes", "give 1 or more")
    if encoder.takes != collection.holds:
        raise MismatchError(
            f"the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
            "read the data with the reader's option regions=FILE.npy, or without it",
        )
    # Of rows that are given the pictures need not be there.
    given = encoder if isinstance(encoder, GivenRows) else None
    contents = given.fingerprint if given is not None else _contents(collection, should_stop)
    data = fingerprint(collection.text_fingerprint, contents)
    about = {
        "dataset": collection.name,
        "split": split,
        "data": data,
        "encoder": encoder.describe(),
        "notes": list(collection.notes),
    }
    if (folder / "about.json").is_file() and read_json(folder / "about.json") == about:
        return EncodedCollection.open(folder)
    for name in HALVES:
        check_replaceable(folder / name, "embeddings.json")
    (folder / "about.json").unlink(missing_ok=True)
    if given is not None:
        _copy(given, collection, folder, data, about)
    else:
        sides = sides_of(encoder, collection, folder, data, about)
        if processes == 1:
            _in_this_process(encoder, collection, sides, should_stop)
        else:
            encode_in_processes(encoder, collection, sides, processes, accelerator, should_stop)
        _finish(sides)
    with atomic_path(folder / "caption_image.npy") as temporary, open(temporary, "wb") as handle:
        np.save(handle, collection.caption_image)
    # Written last: a folder with it is complete.
    write_json(folder / "about.json", about)
    return EncodedCollection.open(folder)


def _contents(collection: Collection, should_stop: Callable[[], bool]) -> Iterator[str]:
    for content in each_picture_content(collection):
        yield content
        if should_stop():
            raise Interrupted(
                "stopped while pictures were read for the first time", "the same command begins anew"
            )


def _in_this_process(
    encoder: DualEncoder, collection: Collection, sides: Sequence[Side], should_stop: Callable[[], bool]
) -> None:
    for side in sides:
        missing = side.rows.missing().tolist()
        with side.bar() as bar, side.rows as rows:
            done = encode_blocks(
                encoder, collection, rows, missing, tell=bar.advance, should_stop=should_stop
            )
        if not done:
            return


def _finish(sides: Sequence[Side]) -> None:
    """Make embeddings of rows that are complete.

    Raises:
        Interrupted: some are missing.
    """
    if any(len(side.rows.missing()) for side in sides):
        done = [f"{side.rows.done():,} of {side.rows.plan.count:,} {side.unit}" for side in sides]
        raise Interrupted(f"stopped: {' and '.join(done)} are embedded and kept", "the same command goes on")
    for side in sides:
        side.rows.finish(side.target, side.ids, side.header)


def _copy(given: GivenRows, collection: Collection, folder: Path, data: str, about: dict[str, Any]) -> None:
    for kind, ids, blocks in (
        ("image", collection.image_ids, given.image_blocks(collection)),
        ("text", collection.caption_ids, given.text_blocks(collection)),
    ):
        Embeddings.stream(
            folder / f"{kind}s",
            ids,
            given.width,
            blocks,
            encoder=given.fingerprint,
            data=data,
            kind=kind,
            about=about,
            similarity=given.similarity,
        )


def without_bad_images(collection: Collection) -> tuple[Collection, list[str]]:
    """The collection without pictures that cannot be read, and what was wrong with each.

    Reads every picture once; for collections that are known to be damaged, when asked for.
    """

    def problem(row: int) -> str | None:
        try:
            collection.item(row)
        except ImageError as error:
            return error.message
        return None

    found = list(
        track(
            read_ahead(problem, range(collection.n_images)),
            "checking pictures",
            collection.n_images,
            "pictures",
        )
    )
    good = np.flatnonzero([message is None for message in found])
    problems = [message for message in found if message is not None]
    for message in problems:
        logger.warning("left out: %s", message)
    return (collection if not problems else collection.subset(good)), problems
