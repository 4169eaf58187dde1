"""Published datasets: where they are, under which licence, how they are laid out, how large they are.

What is known of them stands in ``known.toml``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from diptych.core.errors import UsageError
from diptych.core.reading import read_toml
from diptych.core.registry import Registry
from diptych.core.table import Table
from diptych.data.collection import Centric, Collection


def captions_text(captions: Mapping[int, str]) -> str:
    return " or ".join(f"{count:,} ({what})" for count, what in captions.items())


@dataclass(frozen=True)
class Size:
    images: int  # how many images
    # the numbers of captions that are in use, and what each means; empty where any will do. One caption
    # for each image is always in use
    captions: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Form:
    name: str  # what the form is called
    sizes: Mapping[str, Size]  # the size of each split
    binding: bool = True  # whether a collection that has none of its dataset's binding forms lacks something


@dataclass(frozen=True)
class Reading:
    """A reader that reads a form in which the dataset is distributed."""

    reader: str  # its name, as --reader takes it
    what: str  # the files that it reads
    options: str = ""  # what to add to the command, e.g. --images flickr30k-images
    file: str = ""  # the file to read of a folder that may hold another dataset of the same form too


@dataclass(frozen=True)
class KnownDataset:
    name: str  # what ``diptych data`` calls it
    title: str  # its full name
    description: str  # one line for lists
    centric: Centric | None  # what its images show; None where both are in it
    citation: str  # the paper to cite
    licence: str  # what may be done with it, and who owns the images, in plain words
    where: Mapping[str, str]  # what there is to fetch, and where
    layout: str  # the folder as it should be, as a tree
    readings: tuple[Reading, ...]  # the readers that read it, the usual one first
    forms: tuple[Form, ...] = ()  # its splits, as they are in use; the first that fits is taken
    thesis: tuple[str, ...] = ()  # what the thesis used of it, and how that is known
    notes: tuple[str, ...] = ()  # what else a user of numbers should know
    # further names of collections of it; names that begin so and continue after ``_`` or ``-`` are parts of it
    names: tuple[str, ...] = ()
    chapter: int = 2  # of the thesis, that used it

    def lines(self) -> list[str]:
        return [
            self.title,
            f"{self.description}; {self.centric or 'scene- and object'}-centric",
            f"cite: {self.citation}",
            f"licence: {self.licence}",
            *(f"{what}: {address}" for what, address in self.where.items()),
            "lay it out so:",
            *(f"    {line}" for line in self.layout.rstrip().splitlines()),
            *(f"thesis, chapter {self.chapter}: {line}" for line in self.thesis),
            *(f"note: {line}" for line in self.notes),
        ]

    def tables(self) -> list[Table]:
        sizes = []
        for form in self.forms:
            name = form.name if form.binding else f"{form.name} (not binding)"
            for split, size in form.sizes.items():
                sizes.append((name, split, f"{size.images:,}", captions_text(size.captions) or "any"))
        after, columns = "one caption of each image is always in use", ("form", "split", "images", "captions")
        readings = [(one.reader, one.what, one.options or "none needed") for one in self.readings]
        return [
            *([Table.of("sizes", after, columns, sizes)] if sizes else []),
            Table.of("read by (--reader)", "", ("reader", "what", "options"), readings),
        ]


KNOWN: Registry[KnownDataset] = Registry("dataset", "diptych.data.known")


_DATASET = TypeAdapter(KnownDataset)
for _name, _given in read_toml(Path(__file__).with_suffix(".toml")).items():
    KNOWN.add(_DATASET.validate_python({"name": _name, "centric": None, **_given}))


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


_BY_NAME = {_plain(name): dataset for dataset in KNOWN for name in (dataset.name, *dataset.names)}


def known_by_name(name: str) -> KnownDataset | None:
    """Return the dataset that a collection of that name is, or is a part of; None where it is not known.

    ``coco`` and ``coco_val2017`` are MS COCO, ``coco-fg`` is not: the longest name wins.
    """
    words = _plain(name).split("-")
    names = ("-".join(words[:end]) for end in range(len(words), 0, -1))
    return next((_BY_NAME[one] for one in names if one in _BY_NAME), None)


def centric_of(given: Any, name: str) -> Centric | None:
    """Return what the images of a collection show: as given, else as its dataset's known name says.

    Args:
        given: a reader's option ``centric``; None where it was not given.
    """
    if given is None:
        known = known_by_name(name)
        return None if known is None else known.centric
    if given not in ("scene", "object"):
        raise UsageError(
            f"centric is {given!r}, it is scene or object", "e.g. --reader-option centric=object"
        )
    return given  # type: ignore[no-any-return]


def called(collection: Collection, given: str) -> Collection:
    """Return a collection under the name that it was given (empty: its own), with what its images show.

    Raises:
        UsageError: the name is that of another known dataset: its numbers would be another's.
    """
    own, known, name = known_by_name(collection.name), known_by_name(given), given or collection.name
    if own is not None and known is not None and own is not known:
        calls = f"the collection called {given!r} calls itself {collection.name!r}"
        fix = f"call it {own.name}=…, or as no known dataset is called"
        raise UsageError(f"{calls}: {own.title}, not {known.title}", fix)
    return replace(collection, name=name, centric=collection.centric or centric_of(None, name))
