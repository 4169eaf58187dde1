"""A dataset's collection and folder, held against what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import CaptionError, DataError, UnknownNameError, UsageError
from diptych.data.checking.inspection import Check, Problem, Some, SplitCheck, inspected
from diptych.data.collection import Collection
from diptych.data.known import KNOWN, Form, KnownDataset, Size, captions_text, known_by_name
from diptych.data.readers import READERS, read_collection

Found = Mapping[str, tuple[int, int]]
"""Images and captions of each split."""


def held_against(found: Found, form: Form | None) -> list[SplitCheck]:
    """Return each split of ``found`` and of ``form``, one beside the other; the form's order first."""
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


def nearest_form(found: Found, forms: Sequence[Form]) -> Form | None:
    """Return the form with the most splits as expected and the fewest others; of equals, the first.

    None where there are no forms.
    """

    def distance(form: Form) -> tuple[int, int]:
        checks = held_against(found, form)
        right = sum(check.verdict == "as expected" for check in checks)
        images = sum(check.images == check.expected_images for check in checks)
        return right - len(checks), images

    return max(forms, key=distance, default=None)


def size_problems(
    splits: Sequence[SplitCheck], form: Form | None, known: KnownDataset | None
) -> list[Problem]:
    """Return what is wrong with the splits of a form that binds."""
    if form is None or known is None or not form.binding:
        return []
    problems = []
    for one in splits:
        captions = captions_text(one.expected_captions)
        expected = f"{one.expected_images or 0:,} images" + (f" and {captions} captions" if captions else "")
        others = f"with --split {next((one.split for one in splits if one.images), 'NAME')}"
        texts = {
            "absent": (
                f"split {one.split} is not there, {one.expected_images or 0:,} images are expected ({form.name})",
                f"fetch it, or check what is there alone {others}",
            ),
            "differs": (
                f"split {one.split}: {expected} expected ({form.name}), "
                f"found {one.images:,} images and {one.captions:,} captions",
                f"fetch the captions again; diptych data show {known.name} lists the sizes in use",
            ),
            "not expected": (
                f"split {one.split} with {one.images:,} images is in none of {form.name}",
                f"diptych data show {known.name} lists the splits in use",
            ),
        }
        if one.verdict in texts:
            problems.append(Problem(*texts[one.verdict]))
    return problems


def same_captions(collection: Collection) -> tuple[Some, Some]:
    """Captions that repeat an earlier one of their image, and captions that another image has too.

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
    repeated = np.sort(order[again])
    images_of_group = np.bincount(group[order][~again])
    shared = np.flatnonzero(images_of_group[group] > 1) if len(texts) else np.empty(0, dtype=np.int64)
    ids = collection.caption_ids
    return Some.of(ids[row] for row in repeated.tolist()), Some.of(ids[row] for row in shared.tolist())


_SKIP = "skip_bad_captions"


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
    """Read a dataset and say what is there, what is missing and what to do next."""
    dataset = KNOWN.get(known) if isinstance(known, str) else known
    path = Path(folder)
    if not path.exists():
        raise DataError(f"{path} does not exist", _layout(dataset))
    chosen = _reader_of(dataset, path) if reader is None else READERS.get(reader).name
    path = _file_of(dataset, chosen, path)
    problems: list[Problem] = []
    given = {key: value for key, value in options.items() if value is not None}
    try:
        collection = read_collection(path, chosen, **given)
    except CaptionError as error:
        if _SKIP not in READERS.get(chosen).options:
            raise
        collection = read_collection(path, chosen, **{**given, _SKIP: True})
        left_out = f"{collection.notes[-1]}; " if collection.notes else ""
        problems.append(
            Problem(
                f"captions that cannot be used: {left_out}the first: {error.message}",
                f"correct them, or read with --reader-option {_SKIP}=true",
            )
        )
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
    """Check what was read already; arguments as in :func:`check_dataset`."""
    found = list(problems)
    notes = list(collection.notes)
    form = _form(collection, known, split)
    sizes = _sizes(collection)
    splits = tuple(one for one in held_against(sizes, form) if split is None or one.split == split)
    if split is not None and split not in sizes:
        raise UnknownNameError(f"split of {collection.name}", split, sizes)
    other = known_by_name(collection.name)
    if known is not None and other is not None and other.name != known.name:
        what = f"this is {other.name} by its name ({collection.name}), not {known.name}"
        found.append(Problem(what, f"diptych data check {other.name} FOLDER"))
    else:
        more = size_problems(splits, form, known)
        found += more
        notes += _sizes_of_others(sizes, known) if more else []
    if form is not None and not form.binding and any(one.verdict != "as expected" for one in splits):
        notes.append(f"its sizes are not those of {form.name}, which alone is no fault")
    rows = np.arange(collection.n_images)
    if split is not None:
        rows = np.flatnonzero(np.asarray(collection.splits, dtype=object) == split)
    unpictured = len(rows) - int(collection.pictured[rows].sum())
    if unpictured:
        notes.append(f"{unpictured:,} of {len(rows):,} have no picture, and none is looked for")
    pictures, more = inspected(collection, rows, _layout(known), decode, workers)
    found += more
    if pictures is None:
        notes.append("the pictures are not files of a folder, so none can be missing or over")
    part = collection if split is None else collection.subset(rows)
    without = np.flatnonzero(part.captions_per_image == 0).tolist()
    repeated, shared = same_captions(part)
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
        without_captions=Some.of(part.image_ids[row] for row in without),
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
    fitting = [one for one in sorted(READERS, key=lambda one: one.general) if one.recognises(path)]
    names = [one.name for one in fitting]
    if not names:
        what = f"no reader recognises {path}" + (f" as {dataset.name}" if dataset is not None else "")
        raise UsageError(what, f"{_layout(dataset)}; or name its format with --reader")
    if dataset is None:
        return names[0]
    for one in dataset.readings:
        if one.reader in names:
            return one.reader
    raise UsageError(
        f"{path} is not laid out as {dataset.name}: it looks like what the reader {names[0]} reads, "
        f"{fitting[0].description}",
        f"{_layout(dataset)}; if this is {dataset.name} in another form, say --reader {names[0]}; check it as "
        f"what it is with diptych data check own {path}",
    )


def _file_of(dataset: KnownDataset | None, reader: str, path: Path) -> Path:
    """Return the dataset's own file of a folder that may hold others of the same form."""
    if dataset is None or not path.is_dir():
        return path
    files = (path / one.file for one in dataset.readings if one.file and one.reader == reader)
    return next((file for file in files if file.is_file()), path)


def _sizes_of_others(sizes: Found, known: KnownDataset | None) -> list[str]:
    """Return a note where the sizes are exactly those of other known datasets."""
    fitting = [
        one.name
        for one in KNOWN
        if one is not known
        and any(
            all(found.verdict == "as expected" for found in held_against(sizes, form)) for form in one.forms
        )
    ]
    return [f"its sizes are those of {', '.join(fitting)}"] if fitting else []


def _sizes(collection: Collection) -> dict[str, tuple[int, int]]:
    names, captions = np.asarray(collection.splits, dtype=object), collection.captions_per_image
    return {
        name: (images, int(captions[names == name].sum())) for name, images in collection.split_sizes.items()
    }


def _form(collection: Collection, known: KnownDataset | None, split: str | None) -> Form | None:
    """Return the form to hold it against; of one split alone, forms that have it count by it alone."""
    if known is None:
        return None
    forms, sizes = known.forms, _sizes(collection)
    if split is not None:
        sizes = {name: size for name, size in sizes.items() if name == split}
        forms = tuple(
            Form(form.name, {split: form.sizes[split]}, form.binding) for form in forms if split in form.sizes
        )
    return nearest_form(sizes, forms)
