"""Images of datasets that ship only their addresses; ``downloads.jsonl`` has a line per image: its file, or why not."""

import io
import ipaddress
import json
import socket
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from diptych.core.context import check_stop, track
from diptych.core.errors import DataError, ImageError
from diptych.core.extras import require
from diptych.core.files import check_replaceable, write_bytes, write_text
from diptych.core.locking import exclusive_folder
from diptych.core.options import parameter
from diptych.core.reading import read_log
from diptych.core.table import Table
from diptych.core.version import __version__
from diptych.data.images import decode_image
from diptych.data.lines import DelimitedTable
from diptych.data.products import picture_name
from diptych.data.readers import read_collection
from diptych.data.source import DataSource, TargetOption

JOURNAL = "downloads.jsonl"
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_GIVEN_UP = 3  # images in a row that a host did not give: its others are left for another call


class FetchOptions(DataSource, TargetOption):
    """Options of the images that are fetched, and of the requests."""

    data: Path = parameter(..., "Dataset of records with addresses, or CSV of id and address.", argument=True)
    contact: str = parameter(
        ..., "Your mail address, sent to every host.", envvar="DIPTYCH_CONTACT", pattern=r"^\w\S+$"
    )
    rate: float = parameter(1.0, "Requests per second and host.", gt=0)
    allow_private: bool = parameter(False, "Follow addresses into private networks.")
    timeout: float = parameter(30.0, "Seconds without a byte; ten times as many in all.", gt=0)
    max_bytes: int = parameter(30_000_000, "An image's largest file.", ge=1)
    retry_failed: bool = parameter(False, "Try those again that failed in an earlier call.")

    @property
    def is_list(self) -> bool:
        """Return whether the data are a CSV file with the columns ``id`` and ``address``."""
        is_table = self.data.suffix == ".csv" and self.reader is None
        return is_table and {"id", "address"} <= {*DelimitedTable(self.data, delimiter="comma").columns}

    def addresses(self) -> dict[str, str]:
        if self.is_list:
            table = DelimitedTable(self.data, delimiter="comma")
            name, address = map(table.columns.index, ("id", "address"))
            found = {row[name]: row[address] for _, row in table.rows() if len(row) > max(name, address)}
        else:
            data = read_collection(self.data, self.reader, **self.reader_options())
            rows = zip(data.image_ids, data.records or (), data.pictured, strict=False)
            found = {name: one.get("picture_address") or "" for name, one, has in rows if not has}
        texts = {name.strip(): str(address).strip() for name, address in found.items() if address}
        if not any(texts):
            raise DataError(f"{self.data}: no addresses", "give records of ids and addresses, or CSV")
        return {name: text for name, text in texts.items() if name and text}


class Downloads(NamedTuple):
    """Counts of images and the journal's lines of those that failed, in this call or before."""

    there: int  # in the folder
    fetched: int  # of these by this call
    left: int  # not tried yet
    failures: list[dict[str, Any]]

    def tables(self) -> list[Table]:
        counts = {"there": self.there, "fetched now": self.fetched, "not tried yet": self.left}
        counts |= dict(Counter(f"failed: {one['error']}" for one in self.failures).most_common(20))
        return [Table.of("downloads", "", ("", "images"), [(name, f"{n:,}") for name, n in counts.items()])]


class Failed(Exception):
    """An image did not come: the reason, and whether another call may get it."""


def download(options: FetchOptions) -> Downloads:
    """Fetch images into a folder, bytes as they came, once decoded; killed at any moment, the same call resumes."""
    folder, file, addresses = options.out, options.out / JOURNAL, options.addresses()
    check_replaceable(folder, JOURNAL)
    client = require("httpx", "downloads", "downloading").Client(
        headers={"User-Agent": f"diptych/{__version__} (+{options.contact})", "Accept": "image/*"},
        timeout=options.timeout,
        follow_redirects=True,
        max_redirects=5,
        trust_env=False,
        event_hooks={"request": [] if options.allow_private else [_check_public]},
    )
    ready, refusals, fetched = defaultdict[str, float](float), Counter[str](), 0
    with exclusive_folder(folder), client:
        journal = {line["id"]: line for _, line in read_log(file)} if file.exists() else {}
        write_text(file, "".join(f"{json.dumps(line)}\n" for line in journal.values()))  # without half a line
        known = [line for name, line in journal.items() if line["address"] == addresses.get(name)]
        there = {line["id"] for line in known if "file" in line and (folder / line["file"]).is_file()}
        failed = {line["id"]: line for line in known if "error" in line}
        final = {name for name, line in failed.items() if not (line["again"] or options.retry_failed)}
        todo = [name for name in addresses if name not in there | final]
        for name in track(todo, "downloading", unit="images"):
            host = "".join(addresses[name].split("/")[2:3])
            if refusals[host] == _GIVEN_UP:
                continue
            check_stop()
            time.sleep(max(0.0, ready[host] - time.monotonic()))
            ready[host] = time.monotonic() + 1 / options.rate
            line: dict[str, Any] = {"id": name, "address": addresses[name]}
            failed.pop(name, None)
            try:
                content, ending = _image(client, addresses[name], options)
                line["file"] = f"{picture_name(name)}.{ending}"
                write_bytes(folder / line["file"], content)
                fetched, refusals[host] = fetched + 1, 0
            except Failed as error:
                line["error"], line["again"] = error.args
                refusals[host] = (refusals[host] + 1) * line["again"]
                failed[name] = line
            with file.open("a", encoding="utf-8") as log:
                log.write(f"{json.dumps(line)}\n")
    n_there = len(there) + fetched
    return Downloads(n_there, fetched, len(addresses) - n_there - len(failed), list(failed.values()))


def _image(client: Any, address: str, options: FetchOptions) -> tuple[bytes, str]:
    import httpx
    from PIL import Image

    content, end = bytearray(), time.monotonic() + 10 * options.timeout
    try:
        with client.stream("GET", address) as answer:
            if answer.status_code != 200:
                raise Failed(f"status {answer.status_code}", answer.status_code in _AGAIN)
            for block in answer.iter_bytes(1 << 16):
                content += block
                if len(content) > options.max_bytes:
                    raise Failed(f"more than {options.max_bytes:,} bytes", False)
                if time.monotonic() > end:
                    raise Failed(f"not there after {10 * options.timeout:g} s", True)
        image = decode_image(bytes(content), "the image")
        if min(image.size) < 2:
            raise Failed(f"a placeholder of {image.width} × {image.height} pixels", False)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError, ImageError) as error:
        passing = isinstance(error, httpx.TransportError | OSError)
        again = passing and not isinstance(error, httpx.UnsupportedProtocol)
        raise Failed(f"{type(error).__name__}: {error}", again) from None
    kind = str(Image.open(io.BytesIO(content)).format).lower()
    return bytes(content), {"jpeg": "jpg", "tiff": "tif"}.get(kind, kind)


def _check_public(request: Any) -> None:
    """Refuse a host inside a private network: a list of addresses must not reach what is behind the firewall."""
    found = socket.getaddrinfo(request.url.host, request.url.port, type=socket.SOCK_STREAM)
    for number in {str(one[4][0]).split("%")[0] for one in found}:
        address = ipaddress.ip_address(number)
        inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
        if not inner.is_global or inner.is_multicast:
            raise Failed(f"private: {request.url.host} leads to {number}", False)
