"""XML feeds, RSS or Atom, item by item; a document that declares anything of its own is refused.

Without a document type there are no entities but XML's five, so nothing expands and nothing outside is read.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from diptych.core.errors import DataError

__all__ = ["feed_items"]

_ITEMS = ("item", "entry")
_BLOCK = 1 << 16
_MAX_ITEM = 1 << 22
"""Characters of an item; longer ones (4 Mi) are refused."""
_MAX_DEPTH = 32


class _Items:
    """What the parser has found so far: whole items, and the one that it is in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.done: list[tuple[int, dict[str, list[str]]]] = []
        self._way: list[str] = []
        self._item: dict[str, list[str]] | None = None
        self._line = self._size = 0
        self._texts: list[str] = []
        self._parts: list[str] = []

    @property
    def where(self) -> str:
        return f"{self.name}, line {self.parser.CurrentLineNumber}"

    def _refuse(self, *_: object) -> None:
        raise DataError(
            f"{self.where}: the document declares a type or entities of its own, which feeds do not need",
            "a declaration may unpack to anything or read other files: take it out",
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._way.append(name)
        if len(self._way) > _MAX_DEPTH:
            raise DataError(f"{self.where}: elements are nested more than {_MAX_DEPTH} deep", "it is no feed")
        if name in _ITEMS and self._item is None:
            self._item, self._line, self._size = {}, self.parser.CurrentLineNumber, 0
        elif self._item is not None:
            self._texts = []
            if self._depth == 1:
                self._parts = []
            self._grow(len(name) + sum(map(len, attributes.values())))
            if name == "link" and attributes.get("href"):
                self._item.setdefault("link", []).append(attributes["href"])

    @property
    def _depth(self) -> int:
        """How far below the item."""
        place = next(place for place, name in enumerate(self._way) if name in _ITEMS)
        return len(self._way) - 1 - place

    def _text(self, text: str) -> None:
        if self._item is not None:
            self._grow(len(text))
            self._texts.append(text)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _MAX_ITEM:
            raise DataError(
                f"{self.name}: the item of line {self._line} is longer than {_MAX_ITEM:,} characters",
                "fetch the file again",
            )

    def _end(self, tag: str) -> None:
        if self._item is not None:
            depth, name = self._depth, self._way[-1]
            if depth == 0:
                self.done.append((self._line, self._item))
                self._item = None
            elif depth == 2:  # what has parts, such as a detail's section, name and value
                self._parts.append("".join(self._texts).strip())
            elif depth == 1:
                value = ":".join(self._parts) if self._parts else "".join(self._texts)
                if value.strip():
                    self._item.setdefault(name, []).append(value.strip())
            self._texts = []
        self._way.pop()


def feed_items(file: Path) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """The line in which an item begins, and its elements: name without namespace → their texts.

    Args:
        file: an RSS or Atom feed, plain or gzipped, in an encoding that XML parsers know and the document names.

    Raises:
        DataError: it is no XML, declares a document type, is nested too deep or has an endless item; the message names
            the line.
    """
    items, given = _Items(file.name), 0
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else open(file, "rb") as handle:
            while block := handle.read(_BLOCK):
                items.parser.Parse(block, False)
                given += len(block)
                if given - items.parser.CurrentByteIndex > _MAX_ITEM + _BLOCK:  # a tag or comment without end
                    raise DataError(f"{items.where} goes on without end", "fetch the file again")
                yield from items.done
                items.done.clear()
            items.parser.Parse(b"", True)
            yield from items.done
    except expat.ExpatError as error:
        raise DataError(
            f"{items.where} is no XML: {expat.ErrorString(error.code)}", "fetch the file again"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{file} is damaged: {error}", "fetch it again") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}", "check the path") from None
