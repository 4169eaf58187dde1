"""What a format of taxonomy files declares, what it reads, and the registry of formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from diptych.commerce.taxonomy.tree import SEPARATOR, CategoryTree
from diptych.commerce.taxonomy.tree import Path as NodePath
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines
from diptych.core.registry import Registry
from diptych.data.products import MAX_LEVELS, plain_text


@dataclass(frozen=True)
class Taxonomy:
    """A category tree as somebody publishes it.

    Attributes:
        tree: the categories; ``tree.codes`` has the taxonomy's own ids where the file gives them.
        name: of the taxonomy, or of its file.
        version: as the file says it; ``""`` where it does not.
        language: as the file's name or its content says it, e.g. ``en-US``; None where neither does.
        notes: what was mended and what a user should know, one line each.
    """

    tree: CategoryTree
    name: str
    version: str = ""
    language: str | None = None
    notes: tuple[str, ...] = field(default=())

    def describe(self) -> str:
        """Return one line: name, version, language, the tree."""
        said = [part for part in (self.name, self.version, self.language) if part]
        return f"{' '.join(said)}: {self.tree.describe()}"


@dataclass(frozen=True)
class Beginning:
    """What a format is recognised by."""

    path: Path  # the file
    lines: tuple[str, ...]  # its first lines that hold something

    @property
    def ending(self) -> str:
        """Of the file's name without ``.gz``, in lower case."""
        return Path(self.path.name.removesuffix(".gz")).suffix.lower()


@dataclass(frozen=True)
class TaxonomyFormat:
    """How one format of taxonomy files is recognised and read.

    Attributes:
        name: what ``--format`` calls it.
        description: one line for help texts.
        recognises: whether a file that begins so looks like this format.
        read: path and keyword options to a Taxonomy.
        options: the keyword options and what each means.
        general: of several formats that recognise a file, the least general one reads it.
    """

    name: str
    description: str
    recognises: Callable[[Beginning], bool]
    read: Callable[..., Taxonomy]
    options: Mapping[str, str] = field(default_factory=dict)
    general: int = 0


TAXONOMIES: Registry[TaxonomyFormat] = Registry("taxonomy format", "diptych.commerce.taxonomy.formats")


_LINES = 20


def _beginning(path: Path, encoding: str) -> Beginning:
    lines = read_lines(path, encoding, error=DataError)
    return Beginning(path, tuple(islice((line for _, line in lines if line.strip()), _LINES)))


def _recognised(beginning: Beginning) -> TaxonomyFormat | None:
    found = (one for one in TAXONOMIES if one.recognises(beginning))
    return min(found, key=lambda one: one.general, default=None)


def recognised_format(path: Path | str) -> TaxonomyFormat | None:
    """Return the format that recognises a file by its first lines; None where none does."""
    return _recognised(_beginning(Path(path), "utf-8"))


def read_taxonomy(path: Path | str, format: str | None = None, **options: Any) -> Taxonomy:
    """Read a file of categories, plain or gzipped."""
    path = Path(path)
    given = {key: str(value) for key, value in options.items() if value is not None}
    if format is None:
        beginning = _beginning(path, given.get("encoding", "utf-8"))
        found = _recognised(beginning)
        if found is None:
            raise UsageError(
                f"no taxonomy format recognises {path}"
                + (
                    f", which begins with {beginning.lines[0][:60]!r}"
                    if beginning.lines
                    else ", which is empty"
                ),
                f"name the format with --format, one of {', '.join(TAXONOMIES.names())}",
            )
        chosen = found
    else:
        chosen = TAXONOMIES.get(format)
    for key in given:
        if key not in chosen.options:
            known = ", ".join(chosen.options) or "none"
            raise UsageError(
                f"taxonomy format {chosen.name!r} has no option {key!r}", f"its options: {known}"
            )
    return chosen.read(path, **given)


_LANGUAGE = re.compile(r"(?<![A-Za-z])([a-z]{2}[-_][A-Z]{2})(?![A-Za-z])")


def language_of(file: Path) -> str | None:
    """Return the language that a file's name ends with (``taxonomy.de-DE.txt``); None where it does not."""
    found = _LANGUAGE.search(file.name)
    return found[1].replace("_", "-") if found else None


def stem_of(file: Path) -> str:
    """Return a file's name without its endings ``.gz`` and the one before."""
    return Path(file.name.removesuffix(".gz")).stem


def names_of(text: str, where: str, separator: str = SEPARATOR) -> NodePath:
    """Return the names of a path, each one line of plain text."""
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

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: dict[NodePath, int] = {}
        self._path_of: dict[str, NodePath] = {}
        self._code_of: dict[NodePath, str] = {}
        self._again = 0

    def __len__(self) -> int:
        return len(self._lines)

    def where(self, line: int) -> str:
        """Return how errors call a line."""
        return f"{self._file.name}, line {line}"

    def add(self, line: int, path: NodePath, code: str = "") -> None:
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

    def path_of(self, code: str) -> NodePath | None:
        """Return the path with that code, None where none was added."""
        return self._path_of.get(code)

    def taxonomy(self, name: str, version: str = "", language: str | None = None) -> Taxonomy:
        """Return what was listed, ancestors included."""
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
