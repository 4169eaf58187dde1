"""``diptych index add``, ``delete`` and ``compact``: changes of a saved index, durable when the command ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console import next_step, show, stop_on_signal
from diptych.core.errors import UsageError
from diptych.core.options import Options, parameter, parse_values
from diptych.data.source import DataSource, DataSpec

if TYPE_CHECKING:
    from diptych.index import Index

IndexFolder = Annotated[
    Path, typer.Argument(metavar="INDEX", help="A folder that diptych index wrote.", show_default=False)
]


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
        diptych index add runs/flickr8k/index-images-exact photos
        diptych index add runs/flickr8k/index-images-exact shop.csv --images photos
    """
    from diptych.encoders.embeddings import read_data
    from diptych.index import StoredIndex
    from diptych.index.updating import add_images, check_takes_images, new_images

    stored = StoredIndex(index)
    check_takes_images(stored.index)
    model = options.model or _model_of(stored.index, index)
    collection = read_data(DataSpec(data=source, **data.model_dump()).section())
    update = new_images(stored.index, collection)
    added = 0
    if update.rows:
        from diptych.api.opening import load

        with stop_on_signal():
            added = add_images(stored, collection, update, load(model))
    show(
        f"{added:,} images added to {index}, {len(update.replaced):,} of them replace others; {update.known:,} were "
        f"there; {len(stored.index):,} in all",
        *(f"note: {message}" for message in update.problems),
    )
    if update.copies:
        copy, of = update.copies[0]
        show(
            f"note: {len(update.copies):,} files are copies of others and left out, the first: {copy} of {of}"
        )
    next_step(["diptych", "search", index, "what to look for"])


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
    from diptych.index.updating import missing_files

    if bool(options.ids) + bool(options.where) + options.missing != 1:
        raise UsageError("one choice of items is needed", "give ids, --where FIELD=VALUE or --missing")
    stored = StoredIndex(index)
    found: Any = stored.index
    names = list(options.ids)
    if options.where:
        if not found.engine().filters:
            raise UsageError(f"the {found.engine_name} engine keeps no metadata", "give ids")
        names = found.matching(parse_values(options.where, "--where"))
    elif options.missing:
        names = missing_files(found)
    stored.delete(names)
    show(f"{len(names):,} items deleted from {index}; {len(stored.index):,} are left")
    next_step(["diptych", "index", "compact", index])


def compact(index: IndexFolder) -> None:
    """Write an index anew without the journal of its changes, which makes opening it fast again.

    Examples:
        diptych index compact runs/flickr8k/index-images-exact
    """
    from diptych.index import StoredIndex

    stored = StoredIndex(index)
    written = stored.compact()
    show(f"{index}: {len(stored.index):,} items, " + ("written anew" if written else "no changes to write"))
    next_step(["diptych", "search", index, "what to look for"])
