"""What a format of taxonomy files declares, what it reads, and the registry of formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from diptych.core.registry import Registry
from diptych.data.taxonomy.tree import CategoryTree


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
        """One line: name, version, language, the tree."""
        said = [part for part in (self.name, self.version, self.language) if part]
        return f"{' '.join(said)}: {self.tree.describe()}"


@dataclass(frozen=True)
class Beginning:
    """What a format is recognised by.

    Attributes:
        path: the file.
        lines: its first lines that hold something.
    """

    path: Path
    lines: tuple[str, ...]

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


TAXONOMIES: Registry[TaxonomyFormat] = Registry("taxonomy format", "diptych.data.taxonomy.formats")
