"""``diptych categories download``: the pictures of a dataset that ships their addresses."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.sources import ReaderName, ReaderOptions, parse_values
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.data.downloads import Downloads, Wanted

_SHOWN = 5


def download(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A dataset whose records say where pictures are, or a CSV file with the columns id and address.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder of pictures: new, or of an earlier call.", show_default=False
        ),
    ],
    contact: Annotated[
        str,
        typer.Option(
            help="Your mail address or web page, sent to every host, so that whoever runs it can reach you.",
            envvar="DIPTYCH_CONTACT",
            show_default=False,
        ),
    ],
    rate: Annotated[float, typer.Option(help="Requests per second and host.")] = 1.0,
    connections: Annotated[int, typer.Option(min=1, help="At once, to one host.")] = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Try at most so many addresses now.", show_default=False)
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try those again that failed in an earlier call.")
    ] = False,
    robots: Annotated[
        bool,
        typer.Option(
            "--robots/--ignore-robots", help="Keep to robots.txt; ignore it only on your own hosts."
        ),
    ] = True,
    allow_private: Annotated[
        bool,
        typer.Option("--allow-private", help="Follow addresses into private networks, such as your own."),
    ] = False,
    attempts: Annotated[int, typer.Option(min=1, help="Per picture, before it counts as failed.")] = 4,
    max_bytes: Annotated[int, typer.Option(min=1, help="A picture's largest file.")] = 30_000_000,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
) -> None:
    """Fetch the pictures of a dataset that ships only their addresses, politely.

    One connection and one request per second to each host, robots.txt and Retry-After kept to. What comes is decoded
    before it is kept. Killed at any moment, the same command goes on where it stopped; downloads.jsonl in the folder
    says what came and why the rest did not. Hosts are called directly, without a proxy.

    Examples:

      [bold]diptych categories download metadata_us_Electronics.json.gz --out images --contact me@example.org[/bold]

      [bold]diptych categories download pictures.csv --out images --contact me@example.org --limit 100[/bold]

      [bold]diptych categories download pictures.csv --out images --contact me@example.org --retry-failed[/bold]
    """
    from diptych.data.downloads import DownloadOptions, download_pictures
    from diptych.data.downloads.options import is_list

    options = DownloadOptions(
        contact=contact,
        rate=rate,
        connections=connections,
        robots=robots,
        allow_private=allow_private,
        attempts=attempts,
        max_bytes=max_bytes,
    )
    with progress(), stop_on_signal():
        wanted = _wanted(data, reader, reader_option)
        done = download_pictures(wanted, out, options, limit=limit, retry_failed=retry_failed)
    _print(done)
    if done.left:
        next_step(_again("to go on", data, out, contact))
    elif done.failures:
        next_step(_again("to try the failed ones again", data, out, contact, "--retry-failed"))
    else:
        dataset = "DATA" if reader is None and not reader_option and is_list(data) else data
        next_step(["diptych", "categories", "train", dataset, "--images", out, "--out", "runs/shop"])


def _again(why: str, data: Path, out: Path, contact: str, *more: str) -> str:
    parts = ["diptych", "categories", "download", str(data), "--out", str(out), "--contact", contact, *more]
    return f"{' '.join(map(shlex.quote, parts))}  # {why}"


def _wanted(data: Path, reader: str | None, reader_option: list[str] | None) -> list[Wanted]:
    from diptych.data import read_collection
    from diptych.data.downloads import read_wanted, wanted_of
    from diptych.data.downloads.options import is_list

    if reader is None and not reader_option and is_list(data):
        return read_wanted(data)
    return wanted_of(read_collection(data, reader, **parse_values(reader_option, "--reader-option")))


def _print(done: Downloads) -> None:
    say(
        f"{done.there:,} of {done.wanted:,} pictures are in {done.folder}, {done.fetched:,} of them fetched now; "
        f"{len(done.failures):,} failed, {done.left:,} not tried yet"
    )
    if done.failures:
        rows = []
        for kind, count in done.reasons.items():
            some = [one for one in done.failures if one["kind"] == kind][:_SHOWN]
            rows.append(
                (kind, f"{count:,}", str(some[0]["error"]), ", ".join(str(one["id"]) for one in some))
            )
        columns = ("kind", "pictures", "the first one's reason", "ids")
        show(Table.of("failed", "", columns, rows))
    if done.given_up:
        show(Table.of("hosts left for another time", "", ("host", "why"), sorted(done.given_up.items())))
