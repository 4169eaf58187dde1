"""Check a dataset before anything is made of it: is everything there, and is it of the sizes that are known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import CaptionError, DataError, UnknownNameError, UsageError
from diptych.core.table import Table, Tabular
from diptych.data.checking_images import NamedCount, Pictures, Problem, inspected
from diptych.data.collection import Centric, Collection
from diptych.data.known import KNOWN, Form, KnownDataset, Size, captions_text, known_by_name
from diptych.data.readers import READERS, read_collection
from diptych.data.readers.contract import fitting

_SKIP = "skip_bad_captions"

# Images and captions of each split.
Found = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class SplitCheck:
    split: str
    images: int  # 0 where it is not there
    captions: int
    expected_images: int | None  # None where it is not known
    expected_captions: Mapping[int, str]  # numbers in use, and what each means; empty where any will do
    verdict: str  # "as expected", "differs", "absent", "not expected" or "not known"
    meaning: str = ""  # what the number of captions means, e.g. "the first five of each"

    @property
    def row(self) -> tuple[str, ...]:
        expected = "" if self.expected_images is None else f"{self.expected_images:,}"
        captions = f"{self.captions:,}", captions_text(self.expected_captions)
        verdict = f"{self.verdict}: {self.meaning}" if self.meaning else self.verdict
        return self.split, f"{self.images:,}", expected, *captions, verdict


@dataclass(frozen=True)
class Check(Tabular):
    dataset: str | None  # the known dataset that it was held against; None for any other
    reader: str
    collection: str  # what was read, in one line
    centric: Centric | None
    form: str | None  # the form of splits that it was held against
    splits: tuple[SplitCheck, ...]
    pictures: Pictures | None  # None where images are not files of a folder
    without_captions: NamedCount  # images that no caption describes
    repeated: NamedCount  # captions that an image has twice
    shared: NamedCount  # captions whose very words also describe another image
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> str:
        if self.complete:
            return "complete: nothing has to be done"
        count = len(self.problems)
        return f"not complete: {count} {'thing has' if count == 1 else 'things have'} to be put right"

    def tables(self) -> list[Table]:
        title = f"splits, held against {self.form}" if self.form else "splits"
        columns = ("split", "images", "expected", "captions", "expected captions", "verdict")
        counts = [
            *(() if self.pictures is None else self.pictures.rows()),
            self.without_captions.row("images without captions"),
            self.repeated.row("captions that repeat another of their image"),
            self.shared.row("captions whose words describe another image too"),
        ]
        return [
            Table.of(title, "", columns, [one.row for one in self.splits]),
            Table.of("files and texts", "", ("what", "how many", "first"), counts),
        ]


def _held_against(found: Found, form: Form | None) -> list[SplitCheck]:
    sizes: Mapping[str, Size] = {} if form is None else form.sizes
    return [_one(split, found.get(split), sizes.get(split), form) for split in {**sizes, **found}]


def _one(split: str, found: tuple[int, int] | None, size: Size | None, form: Form | None) -> SplitCheck:
    images, captions = found or (0, 0)
    if size is None:
        return SplitCheck(split, images, captions, None, {}, "not known" if form is None else "not expected")
    if found is None:
        return SplitCheck(split, 0, 0, size.images, size.captions, "absent")
    meaning = size.captions.get(captions, "one of each" if captions == images else "")
    fits = images == size.images and (meaning or not size.captions)
    verdict = "as expected" if fits else "differs"
    return SplitCheck(split, images, captions, size.images, size.captions, verdict, meaning)


def _nearest_form(known: KnownDataset | None, found: Found, split: str | None) -> Form | None:
    """Return the form with the most splits as expected and the fewest others; of equals, the first.

    Of one split, forms that have it count by it. None where there are no forms.
    """
    forms: Sequence[Form] = () if known is None else known.forms
    if split is not None:
        forms = [replace(one, sizes={split: one.sizes[split]}) for one in forms if split in one.sizes]
        found = {name: size for name, size in found.items() if name == split}

    def nearness(form: Form) -> tuple[int, int]:
        checks = _held_against(found, form)
        right = sum(check.verdict == "as expected" for check in checks)
        return right - len(checks), sum(check.images == check.expected_images for check in checks)

    return max(forms, key=nearness, default=None)


def _size_problems(splits: Sequence[SplitCheck], form: Form, known: KnownDataset) -> Iterator[Problem]:
    show = f"diptych data show {known.name} lists the"
    for one in splits:
        captions = captions_text(one.expected_captions)
        expected = f"{one.expected_images or 0:,} images" + (f" and {captions} captions" if captions else "")
        if one.verdict == "absent":
            others = f"with --split {next((one.split for one in splits if one.images), 'NAME')}"
            what = f"split {one.split} is not there, {one.expected_images or 0:,} images are expected ({form.name})"
            yield Problem(what, f"fetch it, or check only what is there {others}")
        elif one.verdict == "differs":
            what = f"split {one.split}: {expected} expected ({form.name}), found {one.images:,} images and "
            yield Problem(
                f"{what}{one.captions:,} captions", f"fetch the captions again; {show} sizes in use"
            )
        elif one.verdict == "not expected":
            what = f"split {one.split} with {one.images:,} images is in none of {form.name}"
            yield Problem(what, f"{show} splits in use")


def _same_captions(collection: Collection) -> tuple[NamedCount, NamedCount]:
    """Return captions that repeat an earlier one of their image, and captions that another image has too.

    Texts are compared by 64-bit hashes of their words in lower case, so a million of them are a few
    megabytes; two different texts are taken for one less than once in 10^7 collections of a million.
    """
    texts = np.fromiter(
        (hash(" ".join(text.lower().split())) for text in collection.captions),
        np.int64,
        collection.n_captions,
    )
    _, group = np.unique(texts, return_inverse=True)
    image = collection.caption_image
    order = np.lexsort((np.arange(len(texts)), image, group))
    again = np.zeros(len(texts), dtype=bool)  # of the same text and image as the one before
    again[1:] = (np.diff(group[order]) == 0) & (np.diff(image[order]) == 0)
    images_of_group = np.bincount(group[order][~again])
    shared = np.flatnonzero(images_of_group[group] > 1) if len(texts) else np.empty(0, dtype=np.int64)
    return _captions_of(collection, np.sort(order[again])), _captions_of(collection, shared)


def _captions_of(collection: Collection, rows: np.ndarray) -> NamedCount:
    return NamedCount.of(collection.caption_ids[row] for row in rows.tolist())


def check_dataset(
    known: str | KnownDataset | None,
    folder: Path | str,
    *,
    reader: str | None = None,
    split: str | None = None,
    decode: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Check:
    """Read a dataset; return what is there, what is missing and what to do next."""
    dataset = KNOWN.get(known) if isinstance(known, str) else known
    path = Path(folder)
    if not path.exists():
        raise DataError(f"{path} does not exist", _layout(dataset))
    chosen = _reader_of(dataset, path) if reader is None else READERS.get(reader).name
    if dataset is not None and path.is_dir():  # which may hold other datasets of the same form
        files = (path / one.file for one in dataset.readings if one.file and one.reader == chosen)
        path = next((file for file in files if file.is_file()), path)
    problems: list[Problem] = []
    given = {key: value for key, value in options.items() if value is not None}
    try:
        collection = read_collection(path, chosen, **given)
    except CaptionError as error:
        if _SKIP not in READERS.get(chosen).options:
            raise
        collection = read_collection(path, chosen, **{**given, _SKIP: True})
        left_out = f"{collection.notes[-1]}; " if collection.notes else ""
        what = f"captions that cannot be used: {left_out}the first: {error.message}"
        problems.append(Problem(what, f"correct them, or read with --reader-option {_SKIP}=true"))
    return check_collection(
        collection, dataset, chosen, split=split, decode=decode, workers=workers, problems=problems
    )


def check_collection(
    collection: Collection,
    known: KnownDataset | None = None,
    reader: str = "",
    *,
    split: str | None = None,
    decode: bool = False,
    workers: int | None = None,
    problems: Sequence[Problem] = (),
) -> Check:
    found, notes = list(problems), list(collection.notes)
    names, captions = np.asarray(collection.splits, dtype=object), collection.captions_per_image
    sizes = {name: (n, int(captions[names == name].sum())) for name, n in collection.split_sizes.items()}
    if split is not None and split not in sizes:
        raise UnknownNameError(f"split of {collection.name}", split, sizes)
    form = _nearest_form(known, sizes, split)
    splits = tuple(one for one in _held_against(sizes, form) if split is None or one.split == split)
    other = known_by_name(collection.name)
    if known is not None and other is not None and other.name != known.name:
        what = f"this is {other.name} by its name ({collection.name}), not {known.name}"
        found.append(Problem(what, f"diptych data check {other.name} FOLDER"))
    elif known is not None and form is not None and form.binding:
        wrong = list(_size_problems(splits, form, known))
        found += wrong
        fitting_others = [
            one.name
            for one in KNOWN
            if one is not known
            and any(
                all(found.verdict == "as expected" for found in _held_against(sizes, own))
                for own in one.forms
            )
        ]
        if wrong and fitting_others:
            notes.append(f"its sizes are those of {', '.join(fitting_others)}")
    elif form is not None and any(one.verdict != "as expected" for one in splits):
        notes.append(f"its sizes are not those of {form.name}, which need not be a fault")
    rows = np.arange(collection.n_images) if split is None else np.flatnonzero(names == split)
    if unpictured := len(rows) - int(collection.pictured[rows].sum()):
        notes.append(f"{unpictured:,} of {len(rows):,} have no image, and none is looked for")
    pictures, more = inspected(collection, rows, _layout(known), decode, workers)
    found += more
    if pictures is None:
        notes.append("the images are not files of a folder, so none can be missing or over")
    part = collection if split is None else collection.subset(rows)
    without = np.flatnonzero(part.captions_per_image == 0).tolist()
    repeated, shared = _same_captions(part)
    if known is not None and known.centric is not None and collection.centric not in (None, known.centric):
        notes.append(
            f"{known.name} is {known.centric}-centric, and this is read as {collection.centric}-centric"
        )
    return Check(
        dataset=None if known is None else known.name,
        reader=reader,
        collection=part.describe(),
        centric=collection.centric,
        form=None if form is None else form.name,
        splits=splits,
        pictures=pictures,
        without_captions=NamedCount.of(part.image_ids[row] for row in without),
        repeated=repeated,
        shared=shared,
        notes=tuple(notes),
        problems=tuple(found),
    )


def _layout(dataset: KnownDataset | None) -> str:
    return (
        "check the path" if dataset is None else f"diptych data show {dataset.name} says how it is laid out"
    )


def _reader_of(dataset: KnownDataset | None, path: Path) -> str:
    """Return the dataset's first reader that recognises the path; of an unknown dataset, any reader."""
    found = list(fitting(path))
    names = [one.name for one in found]
    if not names or (dataset is not None and names == ["images"]):
        what = f"no reader recognises {path}" + (f" as {dataset.name}" if dataset is not None else "")
        raise UsageError(what, f"{_layout(dataset)}; or name its format with --reader")
    for one in () if dataset is None else dataset.readings:
        if one.reader in names:
            return one.reader
    if dataset is None:
        return names[0]
    raise UsageError(
        f"{path} is not laid out as {dataset.name}: it looks like what the reader {names[0]} reads, "
        f"{found[0].description}",
        f"{_layout(dataset)}; if this is {dataset.name} in another form, say --reader {names[0]}; check it as "
        f"what it is with diptych data check own {path}",
    )
