"""``diptych data``: the datasets that are known, and whether one is all there."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show, warn
from diptych.cli.sources import DataSource, OutOption
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.data.checking import Check, Some, SplitCheck
    from diptych.data.known import KnownDataset, Size

_OWN = "own"
_FOLDERS = 5

Name = Annotated[str, typer.Argument(help="A dataset; diptych data list names them.", show_default=False)]


def list_() -> None:
    """List the datasets that are known.

    Examples:
        diptych data list
    """
    from diptych.data.known import KNOWN

    rows = [(one.name, one.centric or "both", one.description) for one in KNOWN]
    show(Table.of("known datasets", "", ("name", "centric", "what it is"), rows))
    next_step("diptych data show coco", "diptych data check coco FOLDER")


def show_dataset(name: Name) -> None:
    """Show a dataset: where it is, its licence, how to lay it out, its sizes, how it is read.

    Examples:
        diptych data show coco
    """
    from diptych.data.known import KNOWN

    one = KNOWN.get(name)
    say(one.title)
    say(f"{one.description}; {one.centric or 'scene- and object'}-centric")
    say(f"cite: {one.citation}")
    say(f"licence: {one.licence}")
    for what, address in one.where:
        say(f"{what}: {address}")
    say("lay it out so:")
    for line in one.layout.rstrip().splitlines():
        say(f"    {line}")
    _say_forms(one)
    for line in one.thesis:
        say(f"thesis, chapter {one.chapter}: {line}")
    for line in one.notes:
        say(f"note: {line}")
    readings = [(reading.reader, reading.what, reading.options or "none needed") for reading in one.readings]
    show(Table.of("read by (--reader)", "", ("reader", "what", "options"), readings))
    next_step(_command(one))


def _command(one: KnownDataset) -> str:
    options = one.readings[0].options
    return f"diptych data check {one.name} FOLDER" + (f" {options}" if options else "")


def _captions(captions: Any) -> str:
    return " or ".join(f"{count:,} ({what})" for count, what in captions.items())


def _say_forms(one: KnownDataset) -> None:
    def row(form: str, split: str, size: Size) -> tuple[str, str, str, str]:
        return form, split, f"{size.images:,}", _captions(size.captions) or "any"

    rows = [
        row(form.name if form.binding else f"{form.name} (told, not demanded)", split, size)
        for form in one.forms
        for split, size in form.sizes.items()
    ]
    if rows:
        after = "one caption of each image is always in use"
        show(Table.of("sizes", after, ("form", "split", "images", "captions"), rows))


class CheckOptions(DataSource, OutOption):
    """What is checked."""

    split: str | None = Field(None, description="Check this part alone.")
    decode: bool = Field(False, description="Decode every image; without it files are only looked for.")
    workers: int | None = Field(None, ge=0, description="Threads to decode with; as many as there are CPUs.")


def check(
    name: Annotated[
        str,
        typer.Argument(
            help=f"A dataset that diptych data list names; {_OWN} for your own.", show_default=False
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Its folder or file.", show_default=False)],
    options: CheckOptions,
) -> None:
    """Read a dataset and say what is there, what is missing and what to do next.

    Exit code 1 when something has to be put right.

    Examples:
        diptych data check coco coco --decode
        diptych data check flickr30k flickr30k --images images --out check.json
        diptych data check own shop.csv --reader-option caption_column=title
    """
    from diptych.core.files import write_json
    from diptych.data.checking import check_dataset

    with progress():
        found = check_dataset(
            None if name == _OWN else name,
            folder,
            reader=options.reader,
            split=options.split,
            decode=options.decode,
            workers=options.workers,
            **options.reader_options(),
        )
    _say_check(found)
    if options.out is not None:
        write_json(options.out, {"complete": found.complete, "verdict": found.verdict, **asdict(found)})
        say(f"written to {options.out}")
    if not found.complete:
        raise typer.Exit(1)
    given = [word for text in options.reader_option for word in ("--reader-option", text)]
    given += [] if options.images is None else ["--images", str(options.images)]
    next_step(["diptych", "evaluate", "MODEL", "--data", folder, "--reader", found.reader, *given])


def _say_check(found: Check) -> None:
    say(f"{found.collection}  (reader {found.reader})")
    rows = [_split_row(one) for one in found.splits]
    title = f"splits, held against {found.form}" if found.form else "splits"
    columns = ("split", "images", "expected", "captions", "expected captions", "verdict")
    show(Table.of(title, "", columns, rows))
    pictures = found.pictures
    if pictures is not None:
        there = pictures.wanted - pictures.missing.count
        say(f"pictures in {pictures.folder}: {there:,} of {pictures.wanted:,} are there")
        folders = list(pictures.missing_by_folder.items())
        for below, (missing, all_) in folders[:_FOLDERS] if [name for name, _ in folders] != ["."] else []:
            say(f"    {below}: {missing:,} of {all_:,} are missing")
        if len(folders) > _FOLDERS:
            say(f"    … and {len(folders) - _FOLDERS:,} more folders")
        _say_some("pictures that no caption uses", pictures.unused)
        if pictures.empty is not None and pictures.damaged is not None:
            _say_some("empty files", pictures.empty)
            _say_some("pictures that cannot be decoded", pictures.damaged)
    _say_some("images without captions", found.without_captions)
    _say_some("captions that repeat another of their image", found.repeated)
    _say_some("captions whose words describe another image too", found.shared)
    for note in found.notes:
        say(f"note: {note}")
    for problem in found.problems:
        warn(problem.what, "to do")
        warn(problem.fix, "  fix")
    say(found.verdict)


def _say_some(what: str, some: Some) -> None:
    say(f"{what}: {some.count:,}" + (f" ({some.listed()})" if some.count else ""))


def _split_row(one: SplitCheck) -> tuple[str, ...]:
    verdict = f"{one.verdict}: {one.meaning}" if one.meaning else one.verdict
    expected = "" if one.expected_images is None else f"{one.expected_images:,}"
    captions = _captions(one.expected_captions)
    return one.split, f"{one.images:,}", expected, f"{one.captions:,}", captions, verdict
