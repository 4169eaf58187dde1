"""Categories listed by their paths, line by line: what formats of paths share."""

from __future__ import annotations

import re
from pathlib import Path as File

from diptych.core.errors import DataError
from diptych.data.products import plain_text
from diptych.data.taxonomy.declaration import Taxonomy
from diptych.data.taxonomy.tree import MAX_LEVELS, SEPARATOR, CategoryTree, Path

_LANGUAGE = re.compile(r"(?<![A-Za-z])([a-z]{2}[-_][A-Z]{2})(?![A-Za-z])")


def language_of(file: File) -> str | None:
    """The language that a file's name ends with (``taxonomy.de-DE.txt``); None where it does not."""
    found = _LANGUAGE.search(file.name)
    return found[1].replace("_", "-") if found else None


def stem_of(file: File) -> str:
    """A file's name without its endings ``.gz`` and the one before."""
    return File(file.name.removesuffix(".gz")).stem


def names_of(text: str, where: str, separator: str = SEPARATOR) -> Path:
    """The names of a path, each one line of plain text."""
    levels = text.count(separator) + 1
    if levels > MAX_LEVELS:
        raise DataError(f"{where} has {levels:,} levels, more than {MAX_LEVELS}", "check the separator")
    bare = separator.strip()
    names = tuple(plain_text(part) for part in text.strip().split(separator))
    # What is left of the separator at an end of the line stands for a name that is not there.
    if not all(names) or (bare and (names[0].startswith(f"{bare} ") or names[-1].endswith(f" {bare}"))):
        raise DataError(f"{where}: a level of {text.strip()[:80]!r} has no name", "name every level")
    return names


class PathListing:
    """A tree in the making, of paths with or without codes."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._lines: dict[Path, int] = {}
        self._path_of: dict[str, Path] = {}
        self._code_of: dict[Path, str] = {}
        self._again = 0

    def __len__(self) -> int:
        return len(self._lines)

    def where(self, line: int) -> str:
        """How errors call a line."""
        return f"{self._file.name}, line {line}"

    def add(self, line: int, path: Path, code: str = "") -> None:
        """One category; the same one again is counted."""
        if code:
            known = self._path_of.setdefault(code, path)
            if known != path:
                raise DataError(
                    f"{self.where(line)}: id {code} is {SEPARATOR.join(path)!r}, and {SEPARATOR.join(known)!r} in "
                    f"line {self._lines[known]}",
                    "ids must be unique",
                )
            if self._code_of.setdefault(path, code) != code:
                raise DataError(
                    f"{self.where(line)}: {SEPARATOR.join(path)!r} has the id {code}, and {self._code_of[path]} "
                    f"in line {self._lines[path]}",
                    "a category is known by its path: name one of them differently",
                )
        if self._lines.setdefault(path, line) != line:
            self._again += 1

    def path_of(self, code: str) -> Path | None:
        """The path with that code, None where none was added."""
        return self._path_of.get(code)

    def taxonomy(self, name: str, version: str = "", language: str | None = None) -> Taxonomy:
        """What was listed, ancestors included."""
        if not self._lines:
            raise DataError(f"{self._file} lists no categories", "fetch it again, or name another file")
        tree = CategoryTree(self._lines, self._code_of)
        notes = []
        missing = [path for path in tree.paths if path not in self._lines]
        if missing:
            notes.append(
                f"{len(missing):,} categories that only stand in paths of others added, the first: "
                f"{SEPARATOR.join(missing[0])}"
            )
        if self._again:
            notes.append(f"{self._again:,} lines that repeat a category left out")
        return Taxonomy(tree, name, version, language or language_of(self._file), tuple(notes))
