"""The contract of readers: what one declares, how a path is recognised, and how a collection is gathered.

A reader is one file: a function from a path to a collection, decorated with :func:`reader`. A folder is listed
once and its names are compared with the readers' patterns; files are opened only by ``claims``, where several
formats share a name.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from diptych.core.errors import CaptionError, DataError, UsageError, nearest_path
from diptych.core.reading import beginning_of, read_toml
from diptych.core.registry import Registry
from diptych.data.collection import WHOLE, Centric, Collection, ImageSource, Shares
from diptych.data.images import FolderSource
from diptych.data.known import centric_of

# Longer texts are documents, not captions, and are refused.
MAX_CHARACTERS = 20_000

# Files that are opened at most to recognise a folder.
_LOOKS = 100

_TEXTS = "options.toml"  # next to a reader: what its options mean


@dataclass(frozen=True)
class Reader:
    name: str  # what ``--reader`` calls it
    description: str  # one line for help texts
    read: Callable[..., Collection]  # from a path and keyword options
    options: Mapping[str, str]  # the keyword options and what each means
    patterns: tuple[str, ...]  # names, below a folder, of the files that it reads; one of them will do
    files: tuple[
        str, ...
    ] = ()  # further names of single files that it reads where no pattern of a reader fits
    general: int = 0  # of several readers whose patterns fit, the least general is taken
    # whether it reads a path, by the files that fit; None where their names are enough
    claims: Callable[[Path, Sequence[Path]], bool] | None = None


READERS: Registry[Reader] = Registry("reader", "diptych.data.readers", "diptych.readers")

Read = TypeVar("Read", bound=Callable[..., Collection])


def reader(
    name: str,
    description: str,
    *patterns: str,
    files: Sequence[str] = (),
    general: int = 0,
    claims: Callable[[Path, Sequence[Path]], bool] | None = None,
    **options: str,
) -> Callable[[Read], Read]:
    """Register the decorated function as the reader of a format.

    Args:
        options: what its keyword options mean, unless ``options.toml`` next to it says so under its name, or under
            ``[common]`` here.
    """

    def declared(read: Read) -> Read:
        texts = {}
        own = _texts(Path(inspect.getfile(read))).get(name, {})
        known = _texts(Path(__file__))["common"] | own | options
        for key, one in list(inspect.signature(read).parameters.items())[1:]:
            text = known.get(key) or key.replace("_", " ")
            shown = one.default not in (None, False, "") and "(default:" not in text
            texts[key] = f"{text} (default: {str(one.default).lower()})" if shown else text
        READERS.add(Reader(name, description, read, texts, patterns, tuple(files), general, claims))
        return read

    return declared


@cache
def _texts(module: Path) -> dict[str, dict[str, str]]:
    file = module.with_name(_TEXTS)
    return read_toml(file) if file.is_file() else {}


def looks(check: Callable[[Path], bool]) -> Callable[[Path, Sequence[Path]], bool]:
    """Return a claim of a path by looking into the files that fit; where there are very many, into none."""
    return lambda path, found: len(found) <= _LOOKS and any(check(one) for one in found if one.is_file())


def begins(text: str) -> Callable[[Path, Sequence[Path]], bool]:
    return looks(lambda file: beginning_of(file, len(text)) == text)


@cache
def _readers() -> tuple[Reader, ...]:
    return tuple(sorted(READERS, key=lambda one: one.general))


def matching(path: Path, names: Sequence[str], patterns: Iterable[str]) -> list[Path]:
    """Return the files of a folder with these names that fit one of the patterns, sorted; of a file, itself."""
    if not path.is_dir():
        return [path] if any(fnmatchcase(path.name, one.rpartition("/")[2]) for one in patterns) else []
    found: set[Path] = set()
    for pattern in patterns:
        first, _, below = pattern.partition("/")
        folders = (path / name for name in names if fnmatchcase(name, first))
        found.update(folders if not below else (file for one in folders for file in one.glob(below)))
    return sorted(file for file in found if not file.name.startswith("."))


def listing(path: Path) -> list[str]:
    """Return the names in a folder, without hidden ones; none of a file."""
    if not path.is_dir():
        return []
    try:
        return [one.name for one in path.iterdir() if not one.name.startswith(".")]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", "check its permissions") from None


def fitting(path: Path) -> Iterable[Reader]:
    """Yield the readers of a path, the least general first."""
    names = listing(path)
    resort: list[Reader] = []
    for one in _readers():
        found = matching(path, names, one.patterns)
        if found and (one.claims is None or one.claims(path, found)):
            yield one
        elif not found and any(fnmatchcase(path.name, file) for file in one.files) and path.is_file():
            resort.append(one)
    for one in sorted(resort, key=lambda one: one.claims is None):
        if one.claims is None or one.claims(path, [path]):
            yield one


def has_own_format(path: Path) -> bool:
    """Return whether it is a folder, or a file of a format that no other kind of data is written in."""
    return path.is_dir() or any(one.general == 0 for one in fitting(path))


def read_collection(path: Path | str | Any, reader: str | None = None, **options: Any) -> Collection:
    """Read a dataset.

    Args:
        path: a folder or file, a hub name when ``reader`` is ``"huggingface"``, or a pandas or polars DataFrame
            with one image and caption per row.
        reader: the format's name; recognised from the path when not given.
        options: the reader's own options, e.g. ``images="folder/of/images"``.

    Raises:
        UsageError: no reader recognises the path, or an option is not one of the reader's.
        DataError: the path does not exist, or its content is not as its format says.
    """
    if not isinstance(path, Path | str):
        if not isinstance(path, Iterable):
            raise UsageError(
                f"a {type(path).__name__!r} object is no dataset",
                "give a path, a DataFrame or a list of pairs",
            )
        chosen = READERS.get(reader or "pairs")
    elif reader is not None:
        path, chosen = Path(path), READERS.get(reader)
    else:
        path = Path(path)
        if not path.exists():
            raise DataError(f"{path} does not exist", f"{nearest_path(path)}give a dataset's folder or file")
        found = next(iter(fitting(path)), None)
        if found is None:
            raise UsageError(
                f"no reader recognises {path}",
                f"name the format with --reader, one of {', '.join(READERS.names())}",
            )
        chosen = found
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in chosen.options:
            known = ", ".join(chosen.options) or "none"
            raise UsageError(f"reader {chosen.name!r} has no option {key!r}", f"its options: {known}")
    return chosen.read(path, **given)


def one_file(path: Path, *patterns: str, leave_out: Sequence[str] = ()) -> Path:
    """Return the only file of a folder that fits one of the patterns; of a file, itself."""
    if not path.is_dir():
        return path
    found = [file for file in matching(path, listing(path), patterns) if file.name not in leave_out]
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise DataError(
            f"one file {' or '.join(patterns)} expected in {path}, {len(found)} candidates: {names}",
            "give the file itself with --data",
        )
    return found[0]


def first_folder(given: Path | str | None, candidates: Iterable[Path], flag: str) -> Path | None:
    """Return the folder that was given, else the first of the candidates that is there; None where none is."""
    if given is not None:
        folder = Path(given)
        if not folder.is_dir():
            what = "image folder" if flag == "--images" else "folder"
            raise DataError(f"the {what} {folder} does not exist", f"check {flag}")
        return folder
    return next((folder for folder in candidates if folder.is_dir()), None)


def image_folder(given: Path | str | None, home: Path) -> Path:
    """Return the folder of images: as given, else ``images/`` in a folder, else that folder itself."""
    return first_folder(given, (home / "images",), "--images") or home


def choice(what: str, value: Any, known: Iterable[str]) -> None:
    """Raise a UsageError where an option is none of the values there are."""
    if value not in (known := list(known)):
        raise UsageError(f"{what} is {value!r}", f"one of {', '.join(known)}")


def checked_caption(text: str, name: str) -> str:
    """Return the caption without surrounding white space."""
    stripped = text.strip()
    wrong = ""
    if not any(character.isalnum() for character in stripped):
        wrong = f"is empty: {text[:40]!r}"
    elif len(stripped) > MAX_CHARACTERS:
        wrong = f"has {len(stripped):,} characters, more than the {MAX_CHARACTERS:,} allowed"
    else:
        try:
            stripped.encode()
        except UnicodeEncodeError:  # JSON can hold a lone surrogate, no file can
            wrong = f"holds half a character: {stripped[:40]!r}"
    if wrong:
        raise CaptionError(
            f"{name} {wrong}", "correct it, or leave it out with --reader-option skip_bad_captions=true"
        )
    return stripped


@dataclass(slots=True)
class Item:
    """An image, or a product, of a collection in the making."""

    split: str
    where: str  # where it was read
    record: Mapping[str, Any] | None
    group: str  # items of one group are in one split; empty: a group of its own
    image: str | None = None  # its file; empty for none, None: it is called as the item is
    n_texts: int = 0  # that were read, those left out included
    captions: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    caption_records: list[Mapping[str, Any]] = field(default_factory=list)


class Gathering:
    """A collection in the making: images with their captions, one after the other.

    Args:
        join: whether an image that comes again gets further captions, instead of being an error.
    """

    def __init__(
        self,
        skip_bad_captions: bool = False,
        validation: float = 0.1,
        test: float = 0.1,
        join: bool = False,
    ) -> None:
        self.shares: Shares = Shares(validation, test)
        self.items: dict[str, Item] = {}
        self.counts: Counter[str] = Counter()  # of what a reader of numbers should know
        self._skip, self._join = skip_bad_captions, join

    def add(
        self,
        name: str,
        texts: Iterable[str] = (),
        split: str = WHOLE,
        record: Mapping[str, Any] | None = None,
        where: str = "",
        ids: Iterable[str] | None = None,
        caption_records: Iterable[Mapping[str, Any]] = (),
        group: str = "",
    ) -> Item:
        """Add an image, or captions to it; without ``ids`` they are ``NAME#0``, ``NAME#1``, …."""
        item = self.items.get(name)
        if item is None:
            item = self.items[name] = Item(split, where, record, group)
        elif not self._join:
            raise DataError(f"{where}: image id {name!r} occurs twice", "make ids unique")
        elif item.split != split:
            raise DataError(
                f"{where}: {name} is in split {item.split!r} ({item.where}) and in {split!r}",
                "an image belongs to one split",
            )
        texts, records = list(texts), list(caption_records)
        first = item.n_texts
        named = [f"{name}#{first + i}" for i in range(len(texts))] if ids is None else list(ids)
        item.n_texts += len(texts)
        for place, (text, identifier) in enumerate(zip(texts, named, strict=True)):
            try:
                of = "" if identifier.startswith(name) else f" of {name}"
                item.captions.append(checked_caption(text, f"{where}, caption {identifier}{of}"))
            except CaptionError:
                if not self._skip:
                    raise
                self.counts["empty captions left out"] += 1
                continue
            item.ids.append(identifier)
            item.caption_records += records[place : place + 1]
        return item

    def collection(
        self,
        name: str,
        source: Path | ImageSource,
        centric: Any = None,
        notes: Iterable[str] = (),
        source_rows: np.ndarray | None = None,
    ) -> Collection:
        """Return what was gathered.

        Args:
            source: where the images are; a folder in which they are called by their names.
            source_rows: (n_images,) the row of each image in the source; one after the other by default.
        """
        items = list(self.items.values())
        names = list(self.items)
        shown: Centric | None = centric_of(centric, name)
        if isinstance(source, Path):
            files = [key if item.image is None else item.image for key, item in self.items.items()]
            has_image = np.fromiter(map(bool, files), bool, len(files))
            source_rows = np.where(has_image, np.cumsum(has_image) - 1, -1)
            source = FolderSource(source, [file for file in files if file])
        ids = [one for item in items for one in item.ids]
        if len(set(ids)) != len(ids):
            ids = [f"{key}#{i}" for key, item in self.items.items() for i in range(len(item.ids))]
        caption_records = [one for item in items for one in item.caption_records]
        groups = None
        if any(item.group for item in items):
            groups = [item.group or key for key, item in self.items.items()]
        counted = (f"{count:,} {what}" for what, count in sorted(self.counts.items()) if count)
        return Collection(
            name=name,
            image_ids=names,
            captions=[one for item in items for one in item.captions],
            caption_ids=ids,
            caption_image=np.repeat(np.arange(len(items)), [len(item.captions) for item in items]),
            splits=[item.split for item in items],
            source=source,
            source_rows=np.arange(len(items)) if source_rows is None else source_rows.astype(np.int64),
            records=None
            if all(item.record is None for item in items)
            else [item.record or {} for item in items],
            caption_records=caption_records or None,
            notes=(*notes, *counted),
            centric=shown,
            shares=replace(self.shares, names=groups),
        )


def named_columns(
    columns: Iterable[str],
    given: Mapping[str, str | None],
    known: Mapping[str, Sequence[str]],
    where: object,
) -> list[str]:
    """Return the column of each kind, named or known; all that are missing are named in one message."""
    there = list(map(str, columns))
    accepted = {what: (name,) if name else known[what] for what, name in given.items()}
    found = {what: [name for name in names if name in there] for what, names in accepted.items()}
    if missing := [what for what, names in found.items() if not names]:
        texts = [f"no {what} column" + (f" {given[what]!r}" if given[what] else "") for what in missing]
        flags = " ".join(f"--reader-option {what}_column=NAME" for what in missing)
        fix = f"its columns: {', '.join(there)}; name them with {flags}"
        raise UsageError(f"{where} has {' and '.join(texts)}", fix)
    return [names[0] for names in found.values()]
