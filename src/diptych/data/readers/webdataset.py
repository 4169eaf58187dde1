"""Webdataset: tar shards of ``KEY.jpg`` with ``KEY.txt`` or ``KEY.json``, as img2dataset writes them.

Shards are gone through once for where things are, and not unpacked; that is kept in the cache folder under the
shards' names, sizes and times. Ids and captions stay in files, too: a million images need no more memory than a
thousand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Literal

from diptych.core.context import track
from diptych.core.errors import CaptionError, DataError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import file_errors, open_regular
from diptych.data.captions import SPLIT_WORDS, split_named
from diptych.data.collection import WHOLE, Centric, Collection, Shares
from diptych.data.images import MAX_BYTES, PICTURE_ENDINGS
from diptych.data.known import centric_of
from diptych.data.readers.contract import choice, reader
from diptych.data.shards import (
    IGNORED,
    PLACES,
    CutError,
    Member,
    Shard,
    ShardRecords,
    ShardSource,
    find_shards,
    json_object,
    read_members,
)
from diptych.data.stored import Indexer, StoredWriter, file_state, stored

_VERSION = 2
_MAX_TEXT_BYTES = 1 << 20
_TEXTS = ("txt", "json", "cls")  # captions, whatever else is known of a sample, its class
_NO_PICTURE, _NO_CAPTION = "samples without image left out", "samples without caption left out"
_EMPTY, _CUT = "empty captions left out", "shards that are cut off used up to there"
_AGAIN = "write the shard again"


@dataclass(kw_only=True)
class _Indexer(Indexer):
    """Goes through shards and writes where everything is."""

    caption: str | None
    caption_key: str
    caption_lines: bool
    picture: str | None
    truncated: str

    def shard(self, number: int, shard: Shard, split: str | None) -> None:
        """Write a shard's samples: members with one key that follow each other."""
        with file_errors(shard.path, DataError):
            opened = open_regular(shard.path)
        with opened as handle:
            members = read_members(shard.path, handle, self.counts)
            try:
                for key, group in groupby(members, key=lambda member: member.key):
                    # The last group before a cut may lack members: it raises here.
                    self._sample(number, shard, split, key, list(group), handle)
            except CutError:
                if self.truncated == "error":
                    raise
                self.counts[_CUT] += 1

    def _sample(
        self, number: int, shard: Shard, split: str | None, key: str, files: list[Member], handle: BinaryIO
    ) -> None:
        where = f"{shard.path}, sample {key!r} at byte {files[0].offset:,}"
        pictures = PICTURE_ENDINGS if self.picture is None else {self.picture}
        parts: dict[str, Member] = {}
        for member in files:
            if member.ending in pictures or member.ending in _TEXTS:
                if member.ending in parts:
                    raise DataError(f"{where}: .{member.ending} is there twice", _AGAIN)
                parts[member.ending] = member
        found = sorted(pictures & parts.keys())
        if len(found) > 1:
            fix = f"name one with --reader-option picture={found[0]}"
            raise DataError(f"{where} has {len(found)} images: {', '.join(found)}", fix)
        texts = {}
        for ending in (ending for ending in _TEXTS if ending in parts):
            if parts[ending].size > _MAX_TEXT_BYTES:
                what = (
                    f"{where}: its .{ending} has {parts[ending].size:,} bytes, more than {_MAX_TEXT_BYTES:,}"
                )
                raise DataError(what, _AGAIN)
            handle.seek(parts[ending].offset)
            texts[ending] = handle.read(parts[ending].size)
        captions = self._captions(texts, where)
        if not found or captions is None:
            self.miss(_NO_CAPTION if found else _NO_PICTURE, where)
            return
        size = parts[found[0]].size
        if size > MAX_BYTES:
            raise DataError(
                f"{where}: its image has {size:,} bytes, more than the {MAX_BYTES:,} allowed", _AGAIN
            )
        place = [number]
        for ending in (found[0], "json", "cls"):
            place += [parts[ending].offset, parts[ending].size] if ending in parts else [0, 0]
        name = f"{shard.name}/{key}"
        self.writer.add(name, split or WHOLE, captions, place)

    def _captions(self, texts: Mapping[str, bytes], where: str) -> list[str] | None:
        """Return the captions of a sample, without bad ones where they are left out; None for none at all."""
        record = json_object(texts.get("json", b"{}"), f"{where}: its .json")
        found = None
        if self.caption != "json" and "txt" in texts:
            try:
                text = texts["txt"].decode("utf-8-sig")
                found = [line for line in text.splitlines() if line.strip()] if self.caption_lines else [text]
            except UnicodeDecodeError as error:
                if not self.skip_bad_captions:
                    fix = "leave it out with --reader-option skip_bad_captions=true"
                    raise CaptionError(f"the caption of {where} is not UTF-8: {error}", fix) from None
                self.counts[_EMPTY] += 1
                found = []
        elif self.caption != "txt":
            value = record.get(self.caption_key)
            value = [value] if isinstance(value, str) else value
            if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
                found = value
        return None if found is None else self.captions((text, f"the caption of {where}") for text in found)

    def finish(self, n_shards: int) -> None:
        no_picture, no_caption, n_samples = (
            self.counts[_NO_PICTURE],
            self.counts[_NO_CAPTION],
            self.writer.n_images,
        )
        if (no_picture or no_caption) and self.missing == "error":
            raise DataError(
                f"{no_picture:,} samples have no image and {no_caption:,} no caption, {n_samples:,} have both; "
                f"the first: {self.first}",
                "leave them out with --reader-option missing=skip, or say where captions are with caption_key=NAME",
            )
        if not n_samples:
            raise DataError(f"no sample with image and caption in {n_shards:,} shards", "check the shards")
        self.note(_NO_PICTURE, _NO_CAPTION, _EMPTY, _CUT, IGNORED)


@reader(
    "webdataset",
    "tar shards of KEY.jpg with KEY.txt or KEY.json: a folder of them, or a pattern with --reader webdataset",
    "*.tar",
    *(f"{split}/*.tar" for split in SPLIT_WORDS),
    general=5,
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
        caption: where captions are, in ``txt`` or ``json`` files; by default in the first, else in the second.
    """
    path = Path(path)
    choice("caption", caption or "txt", ("txt", "json"))
    choice("missing", missing, ("error", "skip"))
    choice("truncated", truncated, ("error", "skip"))
    shares = Shares(validation, test)
    options: dict[str, Any] = {
        "caption": caption,
        "caption_key": caption_key,
        "caption_lines": caption_lines,
        "picture": picture.lower().removeprefix(".") if picture else None,
        "missing": missing,
        "truncated": truncated,
        "skip_bad_captions": skip_bad_captions,
    }
    shards = find_shards(path)
    splits = [split or split_named(shard.name) for shard in shards]
    if any(splits) and not all(splits):
        raise DataError(
            f"of {shards[splits.index(None)].name} no split is known, of {sum(map(bool, splits)):,} others it is",
            "name one for all with --reader-option split=NAME, or put shards into folders train, val and test",
        )
    states = [(path, shard.name, *state) for shard in shards for path, *state in [file_state(shard.path)]]

    def write(writer: StoredWriter) -> None:
        indexer = _Indexer(writer=writer, **options)
        for number, shard in enumerate(track(shards, "reading shards", unit="shards")):
            indexer.shard(number, shard, splits[number])
        indexer.finish(len(shards))

    key = fingerprint("webdataset", _VERSION, options, split, states)
    columns = stored(f"webdataset-{key}", write, PLACES)
    name = (path if path.is_dir() else shards[0].path.parent).resolve().name
    records = ShardRecords(shards, columns.places, caption_key)
    source = ShardSource(shards, columns.places)
    return columns.collection(name, source, records, centric_of(centric, name), shares)
