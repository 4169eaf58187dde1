"""From a collection and an encoder to embeddings on disk.

Encode once: evaluation, index and analysis work on what is stored here. It is written block by block
(:mod:`row_blocks`), so that a run that was killed goes on where it stopped, and can be shared by several
processes (:mod:`processes`); the numbers are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import (
    DataError,
    ImageError,
    Interrupted,
    MismatchError,
    StorageError,
    UsageError,
)
from diptych.core.files import atomic_path, check_replaceable, read_json, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import track
from diptych.data.collection import Collection
from diptych.data.contents import each_picture_content
from diptych.data.loading import read_ahead
from diptych.encoders.crew import Crew, encode_share
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.encoded import EncodedCollection
from diptych.encoders.given_rows import GivenRows
from diptych.encoders.processes import encode_in_processes
from diptych.encoders.sides import HALVES, Side, sides_of

logger = logging.getLogger(__name__)


def encode_collection(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,
    split: str | None = None,
    *,
    processes: int = 1,
    accelerator: str = "auto",
    fabric: Any = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> EncodedCollection:
    """Embed pictures and captions into ``folder``, or open what is there when it is the same.

    "The same" is: the same encoder fingerprint, ids, captions and bytes of pictures. Of the same, what an
    interrupted call had finished is used, and what is missing or damaged is made again.
    """
    folder, crew = Path(folder), Crew(fabric)
    if processes < 1 or (processes > 1 and crew.size > 1):
        raise UsageError(
            f"{processes} processes for each of {crew.size}",
            "give 1 or more, and with a Fabric of several none",
        )
    if encoder.takes != collection.holds:
        raise MismatchError(
            f"the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
            "read the data with the reader's option regions=FILE.npy, or without it",
        )
    about = crew.told(lambda: _about(encoder, collection, split, should_stop))
    if crew.told(lambda: _is_there(folder, about)):
        return EncodedCollection.open(folder)
    if crew.first:
        for name in HALVES:
            check_replaceable(folder / name, "embeddings.json")
        (folder / "about.json").unlink(missing_ok=True)
    if isinstance(encoder, GivenRows):
        if crew.first:
            _copy(encoder, collection, folder, about)
    elif processes == 1:
        _finish(encode_share(crew, encoder, collection, folder, about, should_stop), crew)
    else:
        sides = sides_of(encoder, collection, folder, about)
        encode_in_processes(encoder, collection, sides, processes, accelerator, should_stop)
        _finish(sides, crew)
    if crew.first:
        with atomic_path(folder / "caption_image.npy") as temporary, open(temporary, "wb") as handle:
            np.save(handle, collection.caption_image)
        # Written last: a folder with it is complete.
        write_json(folder / "about.json", about)
    crew.wait()
    return EncodedCollection.open(folder)


def stored_collection(
    encoder: DualEncoder, collection: Collection, folder: Path | str, split: str | None = None
) -> EncodedCollection | None:
    """Open the embeddings in ``folder`` where :func:`encode_collection` would use them as they are."""
    folder = Path(folder)
    if not (folder / "about.json").is_file() or encoder.takes != collection.holds:
        return None
    about = _about(encoder, collection, split, lambda: False)
    return EncodedCollection.open(folder) if _is_there(folder, about) else None


def _is_there(folder: Path, about: dict[str, Any]) -> bool:
    """Whether the folder is finished, of this encoder and data, and whole."""
    try:
        return bool(read_json(folder / "about.json") == about and EncodedCollection.open(folder))
    except (StorageError, DataError):
        return False  # missing or damaged: made again


def _about(
    encoder: DualEncoder, collection: Collection, split: str | None, should_stop: Callable[[], bool]
) -> dict[str, Any]:
    # Of rows that are given the pictures need not be there.
    given = isinstance(encoder, GivenRows)
    contents = encoder.fingerprint if given else _contents(collection, should_stop)
    return {
        "dataset": collection.name,
        "split": split,
        "data": fingerprint(collection.text_fingerprint, contents),
        "encoder": encoder.describe(),
        "notes": list(collection.notes),
    }


def _contents(collection: Collection, should_stop: Callable[[], bool]) -> Iterator[str]:
    for content in each_picture_content(collection):
        yield content
        if should_stop():
            raise Interrupted(
                "stopped while pictures were read for the first time", "the same command begins anew"
            )


def _finish(sides: Sequence[Side], crew: Crew) -> None:
    """Make embeddings of rows that are complete."""
    missing = any(len(side.rows.missing()) for side in sides)
    done = [f"{side.rows.done():,} of {side.rows.plan.count:,} {side.unit}" for side in sides]
    crew.wait()  # all have looked before the first gives the rows their names
    if missing:
        raise Interrupted(f"stopped: {' and '.join(done)} are embedded and kept", "the same command goes on")
    for side in sides if crew.first else ():
        side.rows.finish(side.target, side.ids, side.header)


def _copy(given: GivenRows, collection: Collection, folder: Path, about: dict[str, Any]) -> None:
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
            data=about["data"],
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
