"""What lies where in a tar file: headers alone, nothing unpacked, nothing trusted.

A header is 512 bytes, read by ``tarfile``; the walk from one to the next is our own, for the library keeps
every member in memory and takes a file that was cut off for its end. Links, devices and folders are not
data and are passed over.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.core.reading import file_errors, open_regular
from diptych.data.captions import check_shares
from diptych.data.images import MAX_BYTES, PICTURE_ENDINGS, check_inside
from diptych.data.shards.source import MAX_TEXT_BYTES, Shard, json_object
from diptych.data.stored import Indexer, LeaveOut, StoredWriter

_BLOCK = tarfile.BLOCKSIZE
_ZEROS = bytes(_BLOCK)
_DATA = frozenset(tarfile.REGULAR_TYPES) - {tarfile.GNUTYPE_SPARSE}
_WITHOUT_DATA = frozenset(
    {tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE}
)
_EXTENSIONS = frozenset(
    {tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)
# What a longer name or a larger size is written in; real ones have a few hundred bytes.
_MAX_EXTENSION_BYTES = 1 << 20


class Member(NamedTuple):
    """A file in a shard."""

    name: str  # its path in the shard, without a leading ./
    offset: int  # of its first byte in the shard
    size: int  # in bytes; the shard holds all of them


class _Damaged(Exception):
    """What is wrong with a shard from here on."""


class Members:
    """The files of one shard, in order; go through it once."""

    def __init__(self, path: Path, handle: BinaryIO) -> None:
        self.ignored = 0  # links, devices and sparse files passed over so far
        # What is wrong where the shard ends too early or is damaged; members that came before are whole.
        self.cut: DataError | None = None
        self._path, self._handle = path, handle
        self._size = handle.seek(0, 2)

    def __iter__(self) -> Iterator[Member]:
        """Members as they come."""
        at = 0
        longer: dict[str, str] = {}
        while True:
            try:
                info = self._header(at)
                if info is None:
                    return
                start, at = at, at + _BLOCK
                if info.type in _WITHOUT_DATA:
                    self.ignored += info.type != tarfile.DIRTYPE
                    longer = {}
                    continue
                size = self._whole_number(longer["size"]) if "size" in longer else info.size
                if size < 0 or at + size > self._size:
                    raise _Damaged(f"{info.name!r} has {size:,} bytes, {self._size - at:,} are left")
                if info.type in _EXTENSIONS:
                    longer |= self._extension(info, at)
                elif info.type in _DATA:
                    yield Member(self._checked(longer.get("path", info.name), start), at, size)
                    longer = {}
                elif info.type != tarfile.XGLTYPE:
                    self.ignored += 1
                    longer = {}
                at += -(-size // _BLOCK) * _BLOCK
            except _Damaged as damage:
                if at == 0:
                    raise DataError(f"{self._path} is no tar file: {damage}", "fetch it again") from None
                self.cut = DataError(
                    f"{self._path} is damaged or cut off at byte {at:,} of {self._size:,}: {damage}",
                    "fetch it again, or use what comes before with --reader-option truncated=skip",
                )
                return

    def _header(self, at: int) -> tarfile.TarInfo | None:
        """Return the header at ``at``; None for the mark of the end."""
        block = self._read(at, _BLOCK)
        if block == _ZEROS:
            return None
        if len(block) < _BLOCK:
            raise _Damaged("no mark of the end" if not block else f"{len(block)} bytes of a header are left")
        try:
            return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise _Damaged(f"not a header ({error})") from None

    def _extension(self, info: tarfile.TarInfo, at: int) -> dict[str, str]:
        """Return the name or size of the next member where its own header has no room for them."""
        if info.size > _MAX_EXTENSION_BYTES:
            raise _Damaged(f"{info.size:,} bytes of a name")
        content = self._read(at, info.size)
        if info.type == tarfile.GNUTYPE_LONGLINK:
            return {}
        if info.type == tarfile.GNUTYPE_LONGNAME:
            return {"path": content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")}
        found = {}
        while content.strip(b"\0"):  # "LENGTH KEY=VALUE\n", LENGTH being that of all of it
            length = self._whole_number(content.split(b" ", 1)[0].decode("ascii", "replace"))
            key, equals, value = content[:length].partition(b" ")[2].partition(b"=")
            if not equals or length > len(content):
                raise _Damaged("an extended header that is none")
            found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
            content = content[length:]
        return {key: found[key] for key in ("path", "size") if key in found}

    def _read(self, at: int, size: int) -> bytes:
        try:
            self._handle.seek(at)
            return self._handle.read(size)
        except OSError as error:
            raise _Damaged(error.strerror or str(error)) from None

    def _whole_number(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise _Damaged(f"{text[:20]!r} is no number")
        return int(text)

    def _checked(self, name: str, at: int) -> str:
        name = name.removeprefix("./")
        check_inside(name, f"{self._path} (byte {at:,})")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{self._path}, byte {at:,}: {name!r} is no name in UTF-8", "write the shard again"
            ) from None
        return name


# Samples: members of a shard that share a key and follow each other.
#
# ``000123.jpg``, ``000123.txt`` and ``000123.json`` are one sample, ``000123``; the key ends at the first dot
# of the file's name. What is neither picture nor text is passed over.


TEXT_ENDINGS = frozenset({"txt", "json", "cls"})
"""Endings of the texts of a sample: its captions, whatever else is known of it, its class."""


@dataclass
class Sample:
    """Files of one key."""

    key: str  # what they share
    start: int  # byte of the first of them in the shard
    parts: dict[str, Member] = field(default_factory=dict)  # where each is, by its ending in lower case

    def picture(self, ending: str | None = None) -> Member | None:
        """Return the picture, or the one of that ending; None where there is none."""
        if ending is not None:
            return self.parts.get(ending)
        found = sorted(PICTURE_ENDINGS & self.parts.keys())
        if len(found) > 1:
            raise DataError(
                f"{self.key} has {len(found)} pictures: {', '.join(found)}",
                f"name one with --reader-option picture={found[0]}",
            )
        return self.parts[found[0]] if found else None


def samples_of(path: Path, members: Members, picture: str | None = None) -> Iterator[Sample]:
    """Yield the samples of a shard; of one that is cut off, those that are surely whole."""
    endings = (PICTURE_ENDINGS if picture is None else {picture}) | TEXT_ENDINGS
    current: Sample | None = None
    for member in members:
        folder, slash, file = member.name.rpartition("/")
        stem, dot, ending = file.partition(".")
        if not stem or not dot:
            continue
        key, ending = f"{folder}{slash}{stem}", ending.lower()
        if current is None or current.key != key:
            if current is not None:
                yield current
            current = Sample(key, member.offset)
        if ending not in endings:
            continue
        if ending in current.parts:
            raise DataError(
                f"{path}, byte {member.offset:,}: {member.name} is there twice", "write the shard again"
            )
        current.parts[ending] = member
    if current is not None and members.cut is None:
        yield current


@dataclass(frozen=True, kw_only=True)
class IndexOptions(LeaveOut):
    """What decides what is stored; attributes as :func:`read_webdataset` describes them."""

    caption: str | None
    caption_key: str
    caption_lines: bool
    picture: str | None
    split: str | None
    truncated: str

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


_NO_PICTURE, _NO_CAPTION = "samples without picture left out", "samples without caption left out"
_CUT = "shards that are cut off used up to there"
_IGNORED = "links and other members that are no files passed over"


class ShardIndexer(Indexer):
    """Goes through shards and writes where everything is."""

    def __init__(self, options: IndexOptions, writer: StoredWriter) -> None:
        super().__init__(options, writer)
        self._options = options

    def shard(self, number: int, shard: Shard, split: str | None) -> None:
        """Write a shard's samples."""
        options = self._options
        with file_errors(shard.path, DataError):
            opened = open_regular(shard.path)
        with opened as handle:
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
                    self.miss(_NO_PICTURE if picture is None else _NO_CAPTION, where)
                    continue
                if picture.size > MAX_BYTES:
                    raise DataError(
                        f"{where}: its picture has {picture.size:,} bytes, more than the {MAX_BYTES:,} allowed",
                        "write the shard again without it",
                    )
                name = f"{shard.name}/{sample.key}"
                place = [number, *_place(picture), *_place(sample.parts.get("json"))]
                self._writer.add(
                    name, split or self.split_of(name), captions, [*place, *_place(sample.parts.get("cls"))]
                )
            self._counts[_IGNORED] += members.ignored
            if members.cut is not None:
                if options.truncated == "error":
                    raise members.cut
                self._counts[_CUT] += 1

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
        return self.captions((text, f"the caption of {where}") for text in found)

    def _decoded(self, content: bytes, where: str) -> list[str]:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if not self._options.skip_bad_captions:
                raise CaptionError(
                    f"the caption of {where} is not UTF-8: {error}",
                    "leave it out with --reader-option skip_bad_captions=true",
                ) from None
            self._counts["empty captions left out"] += 1
            return []
        return [line for line in text.splitlines() if line.strip()] if self._options.caption_lines else [text]

    def finish(self, n_shards: int) -> None:
        """Say what was left out, or refuse."""
        counts, n_samples = self._counts, self._writer.n_images
        no_picture, no_caption = counts[_NO_PICTURE], counts[_NO_CAPTION]
        if (no_picture or no_caption) and self._options.missing == "error":
            raise DataError(
                f"{no_picture:,} samples have no picture and {no_caption:,} no caption, {n_samples:,} have both; "
                f"the first: {self._first}",
                "leave them out with --reader-option missing=skip, or say where captions are with caption_key=NAME",
            )
        if not n_samples:
            raise DataError(f"no sample with picture and caption in {n_shards:,} shards", "check the shards")
        self.note(_NO_PICTURE, _NO_CAPTION, "empty captions left out", _CUT, _IGNORED)


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
