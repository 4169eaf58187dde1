"""Webdataset: tar shards of ``KEY.jpg`` with ``KEY.txt`` or ``KEY.json``, as img2dataset writes them.

Shards are gone through once for where things are, and not unpacked; that is kept in the cache folder
under the shards' names, sizes and times. Afterwards a picture is one read in the middle of a shard, in
any order. Ids and captions stay in files too: a million pictures need no more memory than a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from diptych.core.context import task
from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint
from diptych.data.captions import SPLIT_WORDS, split_named
from diptych.data.collection import Centric, Collection, Shares
from diptych.data.known import centric_of
from diptych.data.readers.contract import reader
from diptych.data.shards import IndexOptions, Shard, ShardIndexer, ShardRecords, ShardSource, find_shards
from diptych.data.shards.source import PLACES
from diptych.data.stored import StoredWriter, stored

_VERSION = 2


def _splits(shards: Sequence[Shard], split: str | None) -> list[str | None]:
    """Return the split of each shard: as given, as its name says, or None where no name says one."""
    if split is not None:
        return [split] * len(shards)
    named = [split_named(shard.name) for shard in shards]
    if any(named) and not all(named):
        silent, named_at = named.index(None), next(at for at, name in enumerate(named) if name)
        raise DataError(
            f"{shards[named_at].name} is of split {named[named_at]}, of {shards[silent].name} no split is known",
            "name one for all with --reader-option split=NAME, or put shards into folders train, val and test",
        )
    return named


@reader(
    "webdataset",
    "tar shards of KEY.jpg with KEY.txt or KEY.json: a folder of them, or a pattern with --reader webdataset",
    "*.tar",
    *(f"{split}/*.tar" for split in SPLIT_WORDS),
    general=5,
    caption="txt or json: where captions are (default: txt, else json)",
    caption_key="key of the captions in JSON files",
    caption_lines="every line of a txt file is a caption",
    picture="ending of the images, e.g. png (default: any)",
    split="the split of all (default: as names of shards or folders say)",
    missing="error, or skip: samples without image or caption",
    truncated="error, or skip: shards that are cut off",
)
def read_webdataset(
    path: Path | str,
    caption: Literal["txt", "json"] | None = None,
    caption_key: str = "caption",
    caption_lines: bool = False,
    picture: str | None = None,
    split: str | None = None,
    validation: float = 0.1,
    test: float = 0.1,
    missing: Literal["error", "skip"] = "error",
    truncated: Literal["error", "skip"] = "error",
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    """Read shards of a folder, or of a pattern such as ``shards/train-{000..012}.tar``.

    Args:
        caption: where captions are, in ``txt`` or ``json`` files; in the first, else in the second, when
            not given.
    """
    path = Path(path)
    options = IndexOptions(
        caption=caption,
        caption_key=caption_key,
        caption_lines=caption_lines,
        picture=picture.lower().removeprefix(".") if picture else None,
        split=split,
        validation=validation,
        test=test,
        missing=missing,
        truncated=truncated,
        skip_bad_captions=skip_bad_captions,
    )
    options.check()
    shards = find_shards(path)
    splits = _splits(shards, split)
    states = []
    for shard in shards:
        try:
            state = shard.path.stat()
        except OSError as error:
            raise DataError(f"{shard.path} cannot be read: {error.strerror}", "fetch the shard") from None
        states.append((str(shard.path.resolve()), shard.name, state.st_size, state.st_mtime_ns))

    def write(writer: StoredWriter) -> None:
        indexer = ShardIndexer(options, writer)
        with task("reading shards", len(shards), "shards") as bar:
            for number, shard in enumerate(shards):
                indexer.shard(number, shard, splits[number])
                bar.advance()
        indexer.finish(len(shards))

    key = fingerprint("webdataset", _VERSION, asdict(options), states)
    columns = stored(f"webdataset-{key}", write, PLACES)
    name = path.resolve().name if path.is_dir() else Path(shards[0].path.parent).resolve().name
    return columns.collection(
        name,
        ShardSource(shards, columns.places),
        ShardRecords(shards, columns.places, caption_key),
        centric_of(centric, name),
        Shares(validation, test),
    )
