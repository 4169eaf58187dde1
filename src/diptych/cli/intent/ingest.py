"""``diptych intent ingest``: a raw shop log in, a log of canonical events out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show

if TYPE_CHECKING:
    from diptych.data.logs import ColumnMapping, Log

_NAMED = 5
_RULES = "What is dropped"
_FORM = "What the files are"


def ingest(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="Files of a raw log, or a folder of them: CSV, TSV, JSON lines (also gzipped) or Parquet.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the log.", show_default=False)],
    format: Annotated[
        str | None,
        typer.Option(
            help="shop-log, yoochoose, diginetica, rees46, sigir or columns; recognised when not given.",
            show_default=False,
            rich_help_panel=_FORM,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="TARGET=COLUMN of your own log, e.g. time=ts, client=cookie_id, visitor, session, device, channel, "
            "country, action, page_type, query, item, price, purchase, address, agent. Repeatable.",
            show_default=False,
            rich_help_panel=_FORM,
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            help=r"TOML file with \[columns], \[values.action] …, \[constants], time_format, missing.",
            show_default=False,
            rich_help_panel=_FORM,
        ),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(
            help="Of your own log: auto, iso, unix, unix-ms, unix-us, or one of strptime such as '%d/%m/%Y %H:%M'.",
            show_default=False,
            rich_help_panel=_FORM,
        ),
    ] = None,
    times_in: Annotated[
        str, typer.Option(help="Zone of times that name none.", rich_help_panel=_FORM)
    ] = "UTC",
    zone: Annotated[
        str | None,
        typer.Option(
            help="Zone of local days and hours, e.g. Europe/Amsterdam; as the log says it, else UTC.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="First day or moment that is kept.", show_default=False, rich_help_panel=_RULES),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="First day or moment that is no longer kept.", show_default=False, rich_help_panel=_RULES
        ),
    ] = None,
    country: Annotated[
        list[str] | None,
        typer.Option(
            help="Keep only these, e.g. NL,BE,DE. Repeatable.", show_default=False, rich_help_panel=_RULES
        ),
    ] = None,
    keep_missing_country: Annotated[
        bool,
        typer.Option(
            "--keep-missing-country", help="With --country: keep those without one.", rich_help_panel=_RULES
        ),
    ] = False,
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="Keep only these types, e.g. pc,smartphone,tablet,'game console',tv. Repeatable.",
            show_default=False,
            rich_help_panel=_RULES,
        ),
    ] = None,
    keep_bots: Annotated[
        bool,
        typer.Option("--keep-bots", help="Keep events whose user agent is a bot's.", rich_help_panel=_RULES),
    ] = False,
    keep_duplicates: Annotated[
        bool,
        typer.Option("--keep-duplicates", help="Keep events equal in all columns.", rich_help_panel=_RULES),
    ] = False,
    most_events: Annotated[
        int,
        typer.Option(
            min=0, help="Drop clients with more events, whole; 0 for no limit.", rich_help_panel=_RULES
        ),
    ] = 100_000,
    name: Annotated[
        str | None, typer.Option(help="What reports call the log; as its source.", show_default=False)
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(min=1, help="Files of events; by the number of rows.", show_default=False),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="E.g. 1GB; 2GB when not given.", show_default=False)
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="As many as there are processors.", show_default=False)
    ] = None,
) -> None:
    """Import a raw shop log: one table of events, and a report of every row that was dropped.

    Rules drop rows in a fixed order; every row is counted under the first that drops it.

    Examples:

      [bold]diptych intent ingest shop --out log --country NL,BE,DE[/bold]

      [bold]diptych intent ingest yoochoose-clicks.dat yoochoose-buys.dat --out log --zone Europe/Amsterdam[/bold]

      [bold]diptych intent ingest events.csv.gz --column client=cookie_id --column time=ts --column action=event
      --out log[/bold]
    """
    from diptych.data.logs import Cleaning
    from diptych.data.logs import ingest as read

    cleaning = Cleaning(
        since,
        until,
        _split("--country", country),
        keep_missing_country,
        _split("--device", device),
        keep_bots,
        keep_duplicates,
        most_events or None,
    )
    with progress():
        log = read(
            sources,
            out,
            format=format,
            mapping=_mapping(column, mapping, time_format),
            zone=zone,
            times_in=times_in,
            cleaning=cleaning,
            name=name,
            buckets=buckets,
            memory_limit=memory_limit,
            threads=threads,
        )
    _show(log)
    say(f"written to {out}")
    next_step(["diptych", "intent", "describe", str(out)])


def _split(option: str, given: list[str] | None) -> tuple[str, ...]:
    from diptych.core.errors import UsageError

    parts = tuple(part for one in given or () for part in one.split(",") if part.strip())
    if given and not parts:
        raise UsageError(f"{option} names none", "leave it out to keep all")
    return parts


def _mapping(columns: list[str] | None, file: Path | None, time_format: str | None) -> ColumnMapping | None:
    from dataclasses import replace

    from diptych.core.errors import UsageError
    from diptych.data.logs import ColumnMapping, read_mapping

    if not columns and file is None:
        if time_format is not None:
            raise UsageError("--time-format is of your own columns", "name them with --column or --mapping")
        return None
    found = read_mapping(file) if file is not None else ColumnMapping({})
    found = found.with_columns(columns or ())
    return found if time_format is None else replace(found, time_format=time_format)


def _show(log: Log) -> None:
    from diptych.data.logs.schema import printable

    about = log.about
    dropped = log.dropped(everything=False)
    show(*([dropped] if dropped.rows else []))
    nothing = [one["rule"] for one in about["rules"] if not one["dropped"]]
    if nothing:
        say(f"nothing was dropped by: {', '.join(nothing)}")
    say(f"{about['events']:,} events kept, of {about['rows_read']:,} rows that were read")
    for what, counts in (("events by action", about["by_action"]), ("by device", about["devices"])):
        say(f"{what}: " + ", ".join(f"{printable(word)} {count:,}" for word, count in _first(counts)))
    say(
        f"{about['clients']:,} clients, {about['visitors']:,} known visitors, {about['purchases']:,} purchases"
    )
    for note in about["notes"]:
        say(f"note: {note}")
    say(log.describe())


def _first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return list(counts.items())[: 2 * _NAMED]
