"""``diptych study``: the papers' tables, run and held against what the papers print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli import console
from diptych.cli.console import messages, next_step, progress, say, stop_on_signal
from diptych.cli.intent.report import HideRates, LeastCount, discretion_of
from diptych.cli.sources import OutFolder, SkipBadImages, recipe_values
from diptych.cli.study_data import DataChoices, command_of
from diptych.core.errors import UsageError
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.studies import Results, Row

study = typer.Typer(
    name="study",
    help="Run the tables of the papers and hold them against what is printed.",
    epilog="Begin with: diptych study list",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Name = Annotated[str, typer.Argument(help="A study; diptych study list names them.", show_default=False)]


@study.command("list")
def list_() -> None:
    """List the studies: what each asks and how long it takes.

    Example: [bold]diptych study list[/bold]
    """
    from diptych.studies import STUDIES

    papers: dict[str, list[Any]] = {}
    for one in STUDIES:
        papers.setdefault(f"{one.paper.authors}, {one.paper.venue}", []).append(one)
    for paper, found in papers.items():
        rows = [
            [Cell(one.name), Cell(one.asks, words=True), Cell(one.settings["quick"].time, words=True)]
            if "quick" in one.settings
            else [Cell(one.name), Cell(one.asks, words=True), Cell("–")]
            for one in found
        ]
        console.show(Table(paper, ("study", "asks", "time with --quick"), rows))
    next_step(
        "diptych study show metric-learning.table-1", "diptych study run metric-learning.table-1 --quick"
    )


@study.command()
def show(name: Name) -> None:
    """Show a study: the printed table, its rows' recipes in short, its claims and whether the paper's own
    numbers support them.

    Example: [bold]diptych study show ltd.table-1[/bold]
    """
    from diptych.studies import STUDIES, judged_in_the_paper
    from diptych.studies.page import notes_of
    from diptych.studies.tables import claims_tables, published_tables

    one = STUDIES.get(name)
    say(f"{one.paper.authors}, “{one.paper.title}”, {one.paper.venue}")
    say(one.asks)
    console.show(*published_tables(one))
    for setting_name, setting in one.settings.items():
        say(f"setting {setting_name}: {setting.description}; {setting.time}")
    rows = [
        [
            Cell(row.name),
            *(Cell(text, words=True) for text in (row.label, _apart(row), row.base or row.home or "")),
        ]
        for row in (*one.bases, *one.rows)
    ]
    columns = ("name", "label", "what sets it apart", "starts from, or runs in")
    console.show(Table("Rows (--rows)", columns, rows))
    console.show(*claims_tables([(claim, None, printed) for claim, printed in judged_in_the_paper(one)]))
    for note in notes_of(one):
        say(f"note: {note}")
    data = [] if one.without_data else ["--data", "LOG" if one.of_logs else "DATASET"]
    run = ["diptych", "study", "run", name]
    next_step([*run, "--quick"], [*run, *data])


def _apart(row: Row) -> str:
    """What sets a row apart: of its recipe, or of what stands in a recipe's place."""
    sections = {"sparsify": row.sparsify, "search": row.search, "adapt": row.adapt}
    own = {f"{name}.{key}": value for name, keys in sections.items() for key, value in (keys or {}).items()}
    return _changes({**row.changes, **own})


def _changes(changes: Any) -> str:
    parts = []
    for key, value in changes.items():
        if isinstance(value, dict):
            inside = ", ".join(f"{inner} {text}" for inner, text in value.items())
            parts.append(f"{key}: {inside}")
        else:
            parts.append(f"{key} = {'none' if value is None else value}")
    return "; ".join(parts)


@study.command()
def run(
    name: Name,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="A dataset: folder or file. Studies of several take --data NAME=DATASET, repeated; those of a shop's "
            "log take LOG, or raw events.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Names or the paper's numbers, with commas: 1.1,1.2.", show_default=False),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="With commas: 0,1,2. The setting's own when not given.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="On generated scenes, in minutes.")] = False,
    setting: Annotated[
        str | None,
        typer.Option(
            help="paper, data or quick. Without it: paper on the paper's datasets, data on any other.",
            show_default=False,
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="Latent targets: a sentence-transformers model's folder or name, or lsa.", show_default=False
        ),
    ] = None,
    regions: Annotated[
        Path | None, typer.Option(help="An .npy file of region features, for VSRN.", show_default=False)
    ] = None,
    positives: Annotated[
        str | None,
        typer.Option(
            help="Further judgements to measure by, NAME:PATH, e.g. cxc:FOLDER.", show_default=False
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="KEY=VALUE for the recipes of all rows, e.g. model.image.weights=FILE; or what a row is, "
            "e.g. clip=ENCODER. Repeatable.",
            show_default=False,
        ),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Option(
            "--images",
            help="Folder of pictures, where it is not beside the data; NAME=FOLDER of one of several.",
            show_default=False,
        ),
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            help="The data's format, where it is not recognised; NAME=READER of one of several.",
            show_default=False,
        ),
    ] = None,
    reader_option: Annotated[
        list[str] | None,
        typer.Option(
            "--reader-option",
            help="KEY=VALUE for the reader; NAME.KEY=VALUE of one of several. Repeatable.",
            show_default=False,
        ),
    ] = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
    features: Annotated[
        Path | None, typer.Option(help="Folder of cached backbone features.", show_default=False)
    ] = None,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    hide_rates: HideRates = False,
    least_count: LeastCount = 5,
) -> None:
    """Train and measure a study's rows; what is there already is used, what was interrupted goes on.

    Examples:

      [bold]diptych study run metric-learning.table-1 --quick[/bold]

      [bold]diptych study run metric-learning.table-1 --data flickr8k --seeds 0,1,2 --rows 1.1,1.2,1.3,1.4[/bold]

      [bold]diptych study run ltd.table-1 --data flickr30k --targets all-MiniLM-L6-v2[/bold]

      [bold]diptych study run intent.table-6.4 --data LOG[/bold]

      [bold]diptych study run reproducibility.table-2.1 --data coco=COCO --data flickr30k=F30K --set x-vlm=MODEL[/bold]
    """
    from diptych.studies import STUDIES, Choices, run_study

    one = STUDIES.get(name)
    if quick and setting not in (None, "quick"):
        raise UsageError(f"--quick and --setting {setting}", "give one of them")
    chosen = "quick" if quick else setting
    if not data and chosen != "quick" and not one.without_data:
        what = "a log" if one.of_logs else "a dataset"
        raise UsageError(
            f"no data given for {name}", f"give {what} with --data, or --quick for generated scenes"
        )
    choice = DataChoices(data or (), images or (), reader or (), reader_option or (), skip_bad_images)
    folder = out or Path("studies") / name
    choices = Choices(
        setting=chosen,  # type: ignore[arg-type]
        data=None if one.several or one.of_logs else choice.one(),
        collections=choice.several() if one.several else (),
        log=choice.log(name) if one.of_logs else None,
        regions=None if regions is None else str(regions.resolve()),
        targets=targets,
        values=recipe_values(set_),
        positives=positives,
    )
    command = command_of(name, choice, rows, seeds, chosen, targets, regions, positives, set_)
    with progress(), stop_on_signal(), messages():
        results = run_study(
            one,
            folder,
            choices,
            rows=_split(rows),
            seeds=_seeds(seeds),
            features_root=features,
            accelerator=accelerator,
            command=command,
        )
    with discretion_of(hide_rates, least_count):
        _report(results, folder / "report.html", command)
    next_step(["diptych", "study", "verdict", folder], ["open", folder / "report.html"])


@study.command()
def verdict(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of studies, or of runs inside them.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The report; report.html in the first folder.", show_default=False),
    ] = None,
    hide_rates: HideRates = False,
    least_count: LeastCount = 5,
) -> None:
    """Hold what studies measured against what the papers print, cell by cell and claim by claim.

    Example: [bold]diptych study verdict studies/metric-learning.table-1[/bold]
    """
    from diptych.studies import collect
    from diptych.studies.results import STUDY, StudyFolder

    found = collect(runs)
    if out is not None and len(found) > 1:
        names = ", ".join(results.study for results in found)
        raise UsageError(
            f"one report of {len(found)} studies ({names})", "leave --out out, or give one study"
        )
    for results in found:
        own = [
            one
            for one in runs
            if (one / STUDY).is_file() and StudyFolder.open(one / STUDY).study == results.study
        ]
        folder = own[0] if own else runs[0]
        command = StudyFolder.open(folder / STUDY).command if own else ""
        # A run can belong to several studies: its reports are told apart by their names.
        target = out or folder / ("report.html" if own else f"{results.study}.html")
        _report(results, target, command)
        next_step(["open", target])


def _report(results: Results, target: Path, command: str) -> None:
    from diptych.studies import STUDIES, compare
    from diptych.studies.page import study_page
    from diptych.studies.tables import claims_tables, compared_tables, measured_rows

    comparison = compare(STUDIES.get(results.study), results)
    say(comparison.label)
    console.show(*compared_tables(comparison, measured_alone=True), *comparison.tables)
    for name, row in measured_rows(comparison):
        facts = [] if comparison.study.of_logs else [f"seeds {', '.join(map(str, row.seeds))}"]
        facts += [f"{row.cpu_seconds / 60:.1f} CPU minutes"] if row.cpu_seconds else []
        say(f"{name}: {'; '.join([*facts, *row.commands])}")
    for line in dict.fromkeys(f"protocol: {row.protocol}" for _, row in measured_rows(comparison)):
        say(line)
    for remark in comparison.remarks:
        say(remark)
    counts = comparison.counts()
    if comparison.reproduces and counts:
        say("cells: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    console.show(*claims_tables(comparison.claims))
    study_page(comparison, command).save(target)


def _split(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def _seeds(given: str | None) -> list[int] | None:
    parts = _split(given)
    if parts is None:
        return None
    try:
        seeds = [int(part) for part in parts]
    except ValueError:
        raise UsageError(f"--seeds {given!r} are not whole numbers", "e.g. --seeds 0,1,2") from None
    if not seeds or min(seeds) < 0:
        raise UsageError(f"--seeds {given!r}", "give numbers from 0, e.g. --seeds 0,1,2")
    return seeds
