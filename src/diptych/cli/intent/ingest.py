"""``diptych intent ingest``: a raw shop log in, a log of canonical events out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import TargetOption
from diptych.data.logs.rules import Cleaning


class IngestOptions(TargetOption):
    """What the files are, and how they are read."""

    format: str | None = Field(
        None,
        description="shop-log, yoochoose, diginetica, rees46, sigir or columns.",
        json_schema_extra={"default": "recognised", "names": "diptych.data.logs:LOG_FORMATS"},
    )
    column: list[str] = Field(
        [],
        description="TARGET=COLUMN of your own log, e.g. time=ts, client=cookie_id, visitor, session, device, channel, "
        "country, action, page_type, query, item, price, purchase, address, agent. Repeatable.",
    )
    mapping: Path | None = Field(
        None, description="TOML file with [columns], [values.action], [constants], time_format, missing."
    )
    time_format: str | None = Field(
        None,
        description="Of your own log: auto, iso, unix, unix-ms, unix-us, or of strptime, e.g. '%d/%m/%Y %H:%M'.",
    )
    times_in: str = Field("UTC", description="Zone of times that name none.")
    zone: str | None = Field(
        None,
        description="Zone of local days and hours, e.g. Europe/Amsterdam.",
        json_schema_extra={"default": "the log's, or UTC"},
    )
    name: str | None = Field(
        None, description="What reports call the log.", json_schema_extra={"default": "as its source"}
    )
    buckets: int | None = Field(
        None, ge=1, description="Files of events.", json_schema_extra={"default": "by the number of rows"}
    )
    memory_limit: str | None = Field(None, description="E.g. 1GB.", json_schema_extra={"default": "2GB"})
    threads: int | None = Field(
        None, ge=1, description="Of the engine.", json_schema_extra={"default": "all processors"}
    )


def ingest(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="Files of a raw log, or a folder of them: CSV, TSV, JSON lines (also gzipped) or Parquet.",
            show_default=False,
        ),
    ],
    options: IngestOptions,
    cleaning: Cleaning,
) -> None:
    """Import a raw shop log: one table of events, and a report of every row that was dropped.

    Rules drop rows in a fixed order; every row is counted under the first that drops it.

    Examples:
        diptych intent ingest visits --out log --country NL,BE,DE
        diptych intent ingest clicks.dat buys.dat --out log --zone Europe/Amsterdam
        diptych intent ingest events.csv --column client=id --column time=ts -o log
    """
    from diptych.data.logs import ColumnMapping
    from diptych.data.logs import ingest as read

    mapping = ColumnMapping.of(options.column, options.mapping, options.time_format)
    given = options.model_dump(exclude={"out", "column", "mapping", "time_format"})
    with progress():
        log = read(sources, options.out, mapping=mapping, cleaning=cleaning, **given)
    dropped = log.dropped(everything=False)
    show(*([dropped] if dropped.rows else []))
    for line in log.lines():
        say(line)
    say(f"written to {options.out}")
    description = options.out.with_name("description")
    next_step(["diptych", "intent", "describe", options.out, "--out", description])
