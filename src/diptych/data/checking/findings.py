"""What a check of a dataset found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from diptych.data.collection import Centric

_FIRST = 5


def printable(name: str) -> str:
    """A file's name as it can be shown: bytes that are no UTF-8 as ``\\udcff``."""
    return name.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class Some:
    """How many there are, and the first few by name, printable."""

    count: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> Some:
        """All of ``names``."""
        count = 0
        first: list[str] = []
        for name in names:
            count += 1
            if len(first) < _FIRST:
                first.append(printable(name))
        return cls(count, tuple(first))

    def listed(self) -> str:
        """The first ones, with … where there are more."""
        return ", ".join(self.first) + (", …" if self.count > len(self.first) else "")


@dataclass(frozen=True)
class SplitCheck:
    """A split as it is, beside what is expected of it.

    Attributes:
        split: its name.
        images: how many images it has; 0 where it is not there.
        captions: how many captions.
        expected_images: as many are expected; None where nobody knows.
        expected_captions: numbers of captions in use, and what each means; empty where any will do.
        verdict: ``"as expected"``, ``"differs"``, ``"absent"``, ``"not expected"`` or ``"not known"``.
        meaning: what the number of captions means, e.g. ``"the first five of each"``.
    """

    split: str
    images: int
    captions: int
    expected_images: int | None
    expected_captions: Mapping[int, str]
    verdict: str
    meaning: str = ""


@dataclass(frozen=True)
class Pictures:
    """The pictures' folder beside what the captions refer to.

    Attributes:
        folder: where they are looked for.
        wanted: how many pictures the captions refer to.
        missing: those of them that are not there.
        missing_by_folder: per folder below, how many of how many are missing; only folders that miss some.
        unused: pictures there that no caption refers to.
        empty: files of no bytes; None where they were not looked at.
        damaged: files that cannot be decoded, empty ones left aside; None where they were not looked at.
    """

    folder: str
    wanted: int
    missing: Some
    missing_by_folder: Mapping[str, tuple[int, int]]
    unused: Some
    empty: Some | None = None
    damaged: Some | None = None


@dataclass(frozen=True)
class Problem:
    """Something that has to be put right before numbers can be trusted: what, and how."""

    what: str
    fix: str


@dataclass(frozen=True)
class Check:
    """What was found in a dataset.

    Attributes:
        dataset: the known dataset that it was held against; None for any other.
        reader: who read it.
        collection: what was read, in one line.
        centric: what its pictures show.
        form: the form of splits that it was held against.
        splits: each split, found beside expected.
        pictures: the folder of pictures; None where pictures are not files of a folder.
        without_captions: images that no caption describes.
        repeated: captions that an image has twice.
        shared: captions whose very words also describe another image.
        notes: what the reader says, and what is worth knowing though nothing has to be done.
        problems: what has to be put right.
    """

    dataset: str | None
    reader: str
    collection: str
    centric: Centric | None
    form: str | None
    splits: tuple[SplitCheck, ...]
    pictures: Pictures | None
    without_captions: Some
    repeated: Some
    shared: Some
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing has to be put right."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """One line."""
        if self.complete:
            return "complete: nothing has to be done"
        count = len(self.problems)
        return f"not complete: {count} {'thing has' if count == 1 else 'things have'} to be put right"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"complete": self.complete, "verdict": self.verdict, **asdict(self)}
