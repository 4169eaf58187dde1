"""Going through shards once: what is a sample, where it is, and what its captions are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.core.reading import file_errors, open_regular
from diptych.data.captions import assigned_split, check_shares, checked_caption
from diptych.data.images import MAX_BYTES
from diptych.data.shards.members import Member, Members, Sample, samples_of
from diptych.data.shards.source import MAX_TEXT_BYTES, Shard, json_object
from diptych.data.stored import StoredWriter


@dataclass(frozen=True)
class IndexOptions:
    """What decides what is stored; attributes as :func:`read_webdataset` describes them."""

    caption: str | None
    caption_key: str
    caption_lines: bool
    picture: str | None
    split: str | None
    validation: float
    test: float
    missing: str
    truncated: str
    skip_bad_captions: bool

    def check(self) -> None:
        """See that they are options."""
        for what, value, known in (
            ("caption", self.caption, (None, "txt", "json")),
            ("missing", self.missing, ("error", "skip")),
            ("truncated", self.truncated, ("error", "skip")),
        ):
            if value not in known:
                raise UsageError(f"{what} is {value!r}", f"one of {', '.join(filter(None, known))}")
        check_shares(self.validation, self.test)


class Indexer:
    """Goes through shards and writes where everything is."""

    def __init__(self, options: IndexOptions, writer: StoredWriter) -> None:
        self._options, self._writer = options, writer
        self._counts: Counter[str] = Counter()
        self._first = ""

    def shard(self, number: int, shard: Shard, split: str | None) -> None:
        """Write a shard's samples."""
        options = self._options
        with _opened(shard.path) as handle:
            members = Members(shard.path, handle)
            for sample in samples_of(shard.path, members, options.picture):
                where = f"{shard.path}, sample {sample.key!r} at byte {sample.start:,}"
                try:
                    picture = sample.picture(options.picture)
                except DataError as error:
                    raise DataError(
                        f"{shard.path}, byte {sample.start:,}: {error.message}", error.fix
                    ) from None
                about = _text(handle, sample, "json", where)
                record = {} if about is None else json_object(about, f"{where}: its .json")
                captions = self._captions(handle, sample, record, where)
                _text(handle, sample, "cls", where)
                if picture is None or captions is None:
                    self._counts["picture" if picture is None else "caption"] += 1
                    self._first = self._first or where
                    continue
                if picture.size > MAX_BYTES:
                    raise DataError(
                        f"{where}: its picture has {picture.size:,} bytes, more than the {MAX_BYTES:,} allowed",
                        "write the shard again without it",
                    )
                name = f"{shard.name}/{sample.key}"
                part = split or assigned_split(name, options.validation, options.test)
                place = [number, *_place(picture), *_place(sample.parts.get("json"))]
                self._writer.add(name, part, captions, [*place, *_place(sample.parts.get("cls"))])
            self._counts["ignored"] += members.ignored
            if members.cut is not None:
                if options.truncated == "error":
                    raise members.cut
                self._counts["cut"] += 1

    def _captions(
        self, handle: BinaryIO, sample: Sample, record: dict[str, Any], where: str
    ) -> list[str] | None:
        """Return the captions of a sample, without bad ones where that was asked for; None for none at all."""
        options = self._options
        found: list[str] | None = None
        if options.caption != "json":
            content = _text(handle, sample, "txt", where)
            if content is not None:
                found = self._decoded(content, where)
        if found is None and options.caption != "txt":
            value = record.get(options.caption_key)
            texts = [value] if isinstance(value, str) else value
            if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
                found = texts
        if found is None:
            return None
        captions = []
        for text in found:
            try:
                captions.append(checked_caption(text, f"the caption of {where}"))
            except CaptionError:
                if not options.skip_bad_captions:
                    raise
                self._counts["empty"] += 1
        return captions

    def _decoded(self, content: bytes, where: str) -> list[str]:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if not self._options.skip_bad_captions:
                raise CaptionError(
                    f"the caption of {where} is not UTF-8: {error}",
                    "leave it out with --reader-option skip_bad_captions=true",
                ) from None
            self._counts["empty"] += 1
            return []
        return [line for line in text.splitlines() if line.strip()] if self._options.caption_lines else [text]

    def finish(self, n_shards: int) -> None:
        """Say what was left out, or refuse."""
        counts, n_samples = self._counts, self._writer.n_images
        no_picture, no_caption = counts["picture"], counts["caption"]
        if (no_picture or no_caption) and self._options.missing == "error":
            raise DataError(
                f"{no_picture:,} samples have no picture and {no_caption:,} no caption, {n_samples:,} have both; "
                f"the first: {self._first}",
                "leave them out with --reader-option missing=skip, or say where captions are with caption_key=NAME",
            )
        if not n_samples:
            raise DataError(f"no sample with picture and caption in {n_shards:,} shards", "check the shards")
        self._writer.notes += [
            f"{count:,} {what}"
            for count, what in (
                (no_picture, "samples without picture left out"),
                (no_caption, "samples without caption left out"),
                (counts["empty"], "empty captions left out"),
                (counts["cut"], "shards that are cut off used up to there"),
                (counts["ignored"], "links and other members that are no files passed over"),
            )
            if count
        ]


def _opened(path: Path) -> BinaryIO:
    with file_errors(path, DataError):
        return open_regular(path)


def _text(handle: BinaryIO, sample: Sample, ending: str, where: str) -> bytes | None:
    """Return the bytes of a sample's text; None where it has none of that ending."""
    member = sample.parts.get(ending)
    if member is None:
        return None
    if member.size > MAX_TEXT_BYTES:
        raise DataError(
            f"{where}: its .{ending} has {member.size:,} bytes, more than the {MAX_TEXT_BYTES:,} allowed",
            "write the shard again without it",
        )
    try:
        handle.seek(member.offset)
        return handle.read(member.size)
    except OSError as error:
        raise DataError(
            f"{where} cannot be read: {error.strerror or error}", "fetch the shard again"
        ) from None


def _place(member: Member | None) -> tuple[int, int]:
    return (0, 0) if member is None else (member.offset, member.size)
