"""``diptych index add``, ``delete``, ``compact``, ``duplicates``, and ``diptych watch``: an index as files change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console import next_step, show, stop_on_signal
from diptych.core.errors import DataError, UsageError
from diptych.core.options import Options, parameter, parse_values
from diptych.data.source import DataSource, DataSpec

if TYPE_CHECKING:
    from diptych.index import Index, StoredIndex

IndexFolder = Annotated[
    Path, typer.Argument(metavar="INDEX", help="A folder that diptych index wrote.", show_default=False)
]


_LARGE = 64_000_000  # bytes of a journal that is worth writing the index anew


class AddOptions(Options):
    """Options of adding images."""

    model: str | None = parameter(
        None, "The encoder of the index.", metavar="MODEL", default="where the index says it was"
    )


class DeleteOptions(Options):
    """Options that name what is deleted."""

    ids: list[str] = parameter([], "Ids of items.", argument=True, metavar="ID")
    where: list[str] = parameter([], "FIELD=VALUE of metadata, as diptych search takes it. Repeatable.")
    missing: bool = parameter(False, "Images whose files are gone.")


class DuplicateOptions(Options):
    """Options of finding images that are nearly the same."""

    least: float = parameter(0.95, "The cosine from which on two images are the same.", ge=-1, le=1)
    sheet: Path | None = parameter(None, "Write the groups as .png, .jpg or .html.")


class WatchOptions(AddOptions):
    """Options of keeping an index like a folder."""

    index: Path = parameter(..., "The index.", metavar="INDEX")
    every: float = parameter(2.0, "Seconds between two looks at the folder.", gt=0)
    once: bool = parameter(False, "Bring the index up to date and end.")


def add(
    index: IndexFolder,
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="A folder of images, or a dataset.", show_default=False)
    ],
    data: DataSource,
    options: AddOptions,
) -> None:
    """Add images to an index; only those that are new or changed are encoded.

    A file is known by its path, size and time, or by its content; a file whose content is there already is left out.
    Ctrl-C stops after the current block; the same command resumes.

    Examples:
        diptych index add runs/flickr8k/index-images-exact pictures
        diptych index add embedded/index-images-hnsw shop.csv --images pictures
    """
    from diptych.index import StoredIndex

    with stop_on_signal():
        _bring(StoredIndex(index), DataSpec(data=source, **data.model_dump()), options.model, {})
    next_step(["diptych", "search", index, "what to look for"])


def _bring(stored: StoredIndex, data: DataSpec, model: str | None, loaded: dict[str, Any]) -> None:
    """Add what is new of a dataset, and say what was done; the encoder is loaded once, where it is needed."""
    from diptych.encoders.embeddings import read_data
    from diptych.service.indexing import add_images, check_takes_images, new_images

    check_takes_images(stored.index)
    model = model or _model_of(stored.index, stored.folder)
    collection = read_data(data.section())
    update, added = new_images(stored.index, collection), 0
    if update.rows:
        if not loaded:
            from diptych.api.opening import load

            loaded[model] = load(model)
        added = add_images(stored, collection, update, loaded[model])
    show(
        f"{added:,} images added to {stored.folder}, {len(update.replaced):,} of them replace others; "
        f"{update.known:,} were there; {len(stored.index):,} in all",
        *(f"note: {message}" for message in update.problems),
        *copies_note(update.copies, " and left out"),
    )


def copies_note(copies: Sequence[tuple[str, str]], what: str = "") -> list[str]:
    if not copies:
        return []
    one, other = copies[0]
    return [f"note: {len(copies):,} files are copies of others{what}, the first: {one} of {other}"]


def _model_of(index: Index, folder: Path) -> str:
    from diptych.encoders.embeddings import Origin, check_still_there

    if "origin" not in index.about:
        message = f"{folder} does not say what it was built with"
        raise UsageError(message, "name the encoder with --model")
    model = Origin.from_dict(index.about["origin"], folder).model
    check_still_there(model, folder)
    return model


def delete(index: IndexFolder, options: DeleteOptions) -> None:
    """Delete items of an index by id, by metadata, or where their files are gone.

    Examples:
        diptych index delete runs/flickr8k/index-images-exact --missing
        diptych index delete runs/flickr8k/index-images-exact --where split=val
    """
    from diptych.index import StoredIndex
    from diptych.service.indexing import missing_files

    if bool(options.ids) + bool(options.where) + options.missing != 1:
        raise UsageError("one choice of items is needed", "give ids, --where FIELD=VALUE or --missing")
    stored = StoredIndex(index)
    names = list(options.ids)
    if options.where:
        names = stored.index.matching(parse_values(options.where, "--where"))
    elif options.missing:
        names = missing_files(stored.index)
    stored.delete(names)
    show(f"{len(names):,} items deleted from {index}; {len(stored.index):,} are left")
    next_step(["diptych", "index", "compact", index])


def compact(index: IndexFolder) -> None:
    """Write an index anew without the journal of its changes, which makes opening it fast again.

    Images that a service received for items that were deleted are deleted, too.

    Examples:
        diptych index compact runs/flickr8k/index-images-exact
    """
    from diptych.index import StoredIndex

    stored = StoredIndex(index)
    written = stored.compact()
    show(f"{index}: {len(stored.index):,} items, " + ("written anew" if written else "no changes to write"))
    next_step(["diptych", "search", index, "what to look for"])


def duplicates(index: IndexFolder, options: DuplicateOptions) -> None:
    """List groups of images that are nearly the same: how similar each is to the most similar of its group.

    Examples:
        diptych index duplicates runs/flickr8k/index-images-exact --least 0.98
        diptych index duplicates runs/flickr8k/index-images-exact --sheet same.html
    """
    from diptych.core.table import Table
    from diptych.index import open_index
    from diptych.service.indexing import near_duplicates

    opened = open_index(index)
    with stop_on_signal():
        groups = near_duplicates(opened, options.least)
    records = opened.records or {}
    lines = [
        [f"{number}", name, f"{score:.3f}", records.get(name, {}).get("path", "")]
        for number, group in enumerate(groups, 1)
        for name, score in group
    ]
    after = f"{len(lines):,} of {len(opened):,} images in {len(groups):,} groups, cosine at least {options.least:g}"
    show(Table.of("near-duplicates", after, ["group", "id", "cosine", "path"], lines))
    if options.sheet is not None and groups:
        _write_groups(options.sheet, groups, records)
        show(f"contact sheet in {options.sheet}")
    next_step(
        ["diptych", "index", "delete", index, lines[-1][1]]
        if lines
        else ["diptych", "search", index, "words"]
    )


def _write_groups(path: Path, groups: Sequence[Sequence[tuple[str, float]]], records: Any) -> None:
    from diptych.data.images import read_image
    from diptych.report.document import Card, Gallery
    from diptych.report.sheets import write_sheet

    galleries = []
    for number, group in enumerate(groups, 1):
        cards = []
        for name, score in group:
            file = records.get(name, {}).get("path")
            cards.append(Card(name, partial(read_image, Path(file)) if file else None, score=f"{score:.3f}"))
        galleries.append(Gallery(f"Group {number}", cards))
    for name in write_sheet(path, "Near-duplicates", galleries):
        show(f"the image of {name} cannot be read")


def watch(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of images.", show_default=False)],
    options: WatchOptions,
) -> None:
    """Keep an index like a folder: images that were added, changed and removed; Ctrl-C ends it.

    Make the index first: diptych index MODEL --data FOLDER --out INDEX.

    Examples:
        diptych watch pictures --index runs/flickr8k/index-images-exact --once
    """
    from diptych.index import StoredIndex
    from diptych.service.indexing import missing_files, settled_changes

    stored, loaded = StoredIndex(options.index), dict[str, Any]()
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "give the folder that holds the images")
    with stop_on_signal():
        for _ in settled_changes(folder, options.every):
            if not (folder.is_dir() and any(folder.iterdir())):  # a drive that is away is no wish to delete
                show(f"{folder} is empty or gone: nothing is deleted")
                continue
            stored.refresh()
            if gone := missing_files(stored.index, folder.resolve()):
                stored.delete(gone)
                show(f"{len(gone):,} images deleted, whose files are gone")
            with suppress(DataError):  # no image is left
                _bring(stored, DataSpec(data=folder, reader="images"), options.model, loaded)
            if stored.journal_size > _LARGE:
                stored.compact()
                show(f"{options.index} written anew, without the journal of its changes")
            if options.once:
                break
    next_step(["diptych", "search", options.index, "what to look for"])
