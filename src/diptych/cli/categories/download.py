"""``diptych categories download``: the images of a dataset that ships their addresses."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.sources import DataSource
from diptych.core.options import Options

if TYPE_CHECKING:
    from diptych.data.downloads import Wanted


class AddressedData(DataSource):
    """Where the addresses of images are."""

    data: Path = Field(
        description="A dataset whose records have addresses, or a CSV file of ids and addresses.",
        json_schema_extra={"argument": True, "metavar": "DATA"},
    )

    def wanted(self) -> list[Wanted]:
        """Return the images that are wanted."""
        from diptych.data import read_collection
        from diptych.data.downloads import read_wanted, wanted_of

        if self.is_list:
            return read_wanted(self.data)
        return wanted_of(read_collection(self.data, self.reader, **self.reader_options()))

    @property
    def is_list(self) -> bool:
        """Whether it is a CSV file of ids and addresses."""
        from diptych.data.downloads.options import is_list

        return self.reader is None and not self.reader_options() and is_list(self.data)


class FetchOptions(Options):
    """How politely, and how far, images are fetched."""

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


def download(data: AddressedData, options: FetchOptions) -> None:
    """Fetch the images of a dataset that ships only their addresses, politely.

    One connection and one request per second to each host; robots.txt and Retry-After are respected. Images are
    decoded before they are kept. After any interruption the same command resumes; downloads.jsonl in the folder holds
    what came and why the rest did not. Hosts are called directly, without a proxy.

    Examples:
        diptych categories download metadata_us_Shoes.json.gz -o images --contact ME
        diptych categories download images.csv -o images --contact ME --limit 100
        diptych categories download images.csv -o images --contact ME --retry-failed
    """
    from diptych.data.downloads import DownloadOptions, download_pictures

    out = options.out
    given = options.model_dump(exclude={"out", "limit", "retry_failed", "ignore_robots"})
    politeness = DownloadOptions(**given, robots=not options.ignore_robots)
    with progress(), stop_on_signal():
        done = download_pictures(
            data.wanted(), out, politeness, limit=options.limit, retry_failed=options.retry_failed
        )
    say(done.line())
    show(*done.tables())
    again = ["diptych", "categories", "download", str(data.data), "--out", str(out)]
    again += ["--contact", options.contact]
    if done.left:
        next_step(f"{shlex.join(again)}  # to resume")
    elif done.failures:
        next_step(f"{shlex.join([*again, '--retry-failed'])}  # to try the failed ones again")
    else:
        dataset = "DATA" if data.is_list else data.data
        next_step(["diptych", "categories", "train", dataset, "--images", out, "--out", "runs/shop"])
