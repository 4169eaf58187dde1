"""``diptych categories download``: the images of a dataset that ships their addresses."""

from __future__ import annotations

import shlex
from pathlib import Path

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.sources import DataSource


class FetchOptions(DataSource):
    """Which images are fetched, how politely, and how far."""

    data: Path = Field(
        description="A dataset whose records have addresses, or a CSV file of ids and addresses.",
        json_schema_extra={"argument": True, "metavar": "DATA"},
    )
    out: Path = Field(
        description="Folder of images: new, or of an earlier call.",
        json_schema_extra={"flags": ["--out", "-o"]},
    )
    contact: str = Field(
        description="Your mail address or web page, sent to every host.",
        json_schema_extra={"envvar": "DIPTYCH_CONTACT"},
    )
    rate: float = Field(1.0, description="Requests per second and host.")
    connections: int = Field(1, ge=1, description="At once, to one host.")
    limit: int | None = Field(None, ge=1, description="Try at most so many addresses now.")
    retry_failed: bool = Field(False, description="Try those again that failed in an earlier call.")
    ignore_robots: bool = Field(False, description="Ignore robots.txt: on your own hosts only.")
    allow_private: bool = Field(False, description="Follow addresses into private networks.")
    attempts: int = Field(4, ge=1, description="Per image, before it counts as failed.")
    max_bytes: int = Field(30_000_000, ge=1, description="An image's largest file.")


def download(options: FetchOptions) -> None:
    """Fetch the images of a dataset that ships only their addresses, politely.

    One connection and one request per second to each host; robots.txt and Retry-After are respected. Images are
    decoded before they are kept. After any interruption the same command resumes; downloads.jsonl in the folder holds
    what came and why the rest did not. Hosts are called directly, without a proxy.

    Examples:
        diptych categories download metadata_us_Shoes.json.gz -o images --contact ME
        diptych categories download images.csv -o images --contact ME --limit 100
        diptych categories download images.csv -o images --contact ME --retry-failed
    """
    from diptych.data.downloads import DownloadOptions, addresses_in, download_pictures, is_list

    data, out, contact = options.data, options.out, options.contact
    given = {"contact", "rate", "connections", "allow_private", "attempts", "max_bytes"}
    politeness = DownloadOptions(**options.model_dump(include=given), robots=not options.ignore_robots)
    with progress(), stop_on_signal():
        wanted = addresses_in(data, options.reader, **options.reader_options())
        done = download_pictures(
            wanted, out, politeness, limit=options.limit, retry_failed=options.retry_failed
        )
    say(done.line())
    show(*done.tables())
    again = shlex.join(["diptych", "categories", "download", f"{data}", "-o", f"{out}", "--contact", contact])
    if done.left:
        next_step(f"{again}  # to resume")
    elif done.failures:
        next_step(f"{again} --retry-failed  # to try the failed ones again")
    else:
        dataset = "DATA" if options.reader is None and is_list(data) else data
        next_step(["diptych", "categories", "train", dataset, "--images", out, "--out", "runs/shop"])
