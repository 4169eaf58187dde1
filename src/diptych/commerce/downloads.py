"""Images of datasets that ship only their addresses: one request at a time to each host, resumable.

``downloads.jsonl`` in the folder has a line per image, the newest of an id counts: its file, or why it did not come.
"""

from __future__ import annotations

import io
import ipaddress
import json
import socket
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from pydantic import field_validator

from diptych.core.context import check_stop, task
from diptych.core.errors import DataError, ImageError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import check_replaceable, write_bytes, write_text
from diptych.core.locking import exclusive_folder
from diptych.core.options import parameter
from diptych.core.reading import read_log
from diptych.core.table import Table
from diptych.core.version import __version__
from diptych.data.collection import Collection
from diptych.data.images import decode_image
from diptych.data.lines import DelimitedTable
from diptych.data.products import picture_name
from diptych.data.source import DataSource, TargetOption

if TYPE_CHECKING:
    import httpx

JOURNAL = "downloads.jsonl"
_AGENT, _REDIRECTS, _BLOCK = "diptych", 5, 1 << 16
_DEAD_AFTER = 3  # images in a row that a host did not give; then it is left for another time
_LONGEST_WAIT = 600.0  # seconds; a host that asks for more is left too
_LEAST_SIDE = 2  # smaller images are placeholders
_ENDINGS = frozenset({"jpg", "png", "gif", "webp", "bmp", "tif", "ppm"})
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_REFUSED = ("status 401", "status 403", "status 451")


class FetchOptions(DataSource, TargetOption):
    """Which images are fetched, and how politely."""

    data: Path = parameter(
        ...,
        "A dataset whose records have addresses, or CSV of id and address.",
        argument=True,
        metavar="DATA",
    )
    out: Path = parameter(..., "Folder of images: new, or of an earlier call.", "--out", "-o")
    contact: str = parameter(
        ..., "Your mail address or web page, sent to every host.", envvar="DIPTYCH_CONTACT"
    )
    rate: float = parameter(1.0, "Requests per second and host.", gt=0)
    ignore_robots: bool = parameter(False, "Ignore robots.txt: on your own hosts only.")
    allow_private: bool = parameter(False, "Follow addresses into private networks.")
    attempts: int = parameter(4, "Per image, before it counts as failed.", ge=1)
    back_off: float = parameter(
        2.0, "Seconds before the second attempt; then twice as many.", ge=0, hidden=True
    )
    timeout: float = parameter(30.0, "Seconds to connect, and without a byte.", gt=0, hidden=True)
    max_bytes: int = parameter(30_000_000, "An image's largest file.", ge=1)
    limit: int | None = parameter(None, "Try at most so many addresses now.", ge=1)
    retry_failed: bool = parameter(False, "Try those again that failed in an earlier call.")

    @field_validator("contact")
    @classmethod
    def _reachable(cls, contact: str) -> str:
        if (
            not contact.strip()
            or not contact.isascii()
            or not contact.isprintable()
            or set("()") & set(contact)
        ):
            raise UsageError(f"{contact!r} is no contact", "give a mail address or a web page of yours")
        return contact.strip()

    def wanted(self) -> dict[str, str]:
        """Return the address of each image that the data names, by its id."""
        from diptych.data.readers import read_collection

        options = self.reader_options()
        if self.reader is None and not options and is_list(self.data):
            return _listed(self.data)
        return _addresses_of(read_collection(self.data, self.reader, **options))


def is_list(path: Path) -> bool:
    """Return whether a file is a CSV file with the columns ``id`` and ``address``."""
    is_table = path.suffix.lower() == ".csv" and path.is_file()
    return is_table and {"id", "address"} <= set(DelimitedTable(path, delimiter="comma").columns)


def _listed(path: Path) -> dict[str, str]:
    table, found = DelimitedTable(path, delimiter="comma"), dict[str, str]()
    places = [table.columns.index(name) for name in ("id", "address")]
    for line, row in table.rows():
        name, address = (row[at].strip() if at < len(row) else "" for at in places)
        if not name or name in found:
            raise DataError(f"{path}, line {line}: {f'the id {name!r} occurs twice' if name else 'no id'}")
        found |= {name: address} if address else {}
    return found


def _addresses_of(collection: Collection) -> dict[str, str]:
    """Return the addresses of items without an image (``picture_address`` of their records)."""
    records = collection.records or [{}] * collection.n_images
    addresses = [str(record.get("picture_address") or "").strip() for record in records]
    if not any(addresses):
        what = f"{collection.name}: no record of {collection.n_images:,} says where its image is"
        raise DataError(what, "give a dataset with addresses, or a CSV file with the columns id and address")
    items = zip(collection.image_ids, addresses, collection.pictured, strict=True)
    return {name: address for name, address, is_there in items if address and not is_there}


class Trouble(Exception):
    """An image did not come; ``again``: it may come later."""

    def __init__(self, kind: str, reason: str = "", again: bool = False, after: float = 0.0) -> None:
        super().__init__(reason or kind)
        self.kind, self.again, self.after = kind, again, after


@dataclass
class Host:
    """One host: which images it has, and when it may be asked again."""

    jobs: deque[tuple[str, list[str]]] = field(default_factory=deque)  # address and ids of its items
    robots: RobotFileParser | None = None
    wait: float = 0.0  # seconds between two requests
    ready: float = 0.0  # by time.monotonic
    attempts: int = 0  # at the first job
    failed: int = 0  # jobs in a row


@dataclass
class Downloads:
    """What is there of the wanted images, and why others are not."""

    folder: Path
    wanted: int
    there: int = 0
    fetched: int = 0  # of those, by this call
    failures: list[Mapping[str, Any]] = field(default_factory=list)  # lines of the journal
    given_up: dict[str, str] = field(default_factory=dict)  # host → why it was left for another time

    @property
    def left(self) -> int:
        """How many were not tried yet."""
        return self.wanted - self.there - len(self.failures)

    def line(self) -> str:
        return (
            f"{self.there:,} of {self.wanted:,} images are in {self.folder}, {self.fetched:,} of them fetched now; "
            f"{len(self.failures):,} failed, {self.left:,} not tried yet"
        )

    def tables(self) -> list[Table]:
        """Return why images did not come, and the hosts that were given up."""
        rows = []
        for kind, count in Counter(str(one["kind"]) for one in self.failures).most_common():
            some = [one for one in self.failures if one["kind"] == kind]
            rows.append(
                (kind, f"{count:,}", str(some[0]["error"]), ", ".join(str(one["id"]) for one in some[:5]))
            )
        columns = ("kind", "images", "the first one's reason", "ids")
        later = Table.of("hosts left for another time", "", ("host", "why"), sorted(self.given_up.items()))
        return [Table.of("failed", "", columns, rows)] * bool(rows) + [later] * bool(self.given_up)


class _Fetching:
    def __init__(self, options: FetchOptions, wanted: Mapping[str, str], client: httpx.Client) -> None:
        self._options, self._wanted, self._client = options, wanted, client
        self._file, self.result = options.out / JOURNAL, Downloads(options.out, len(wanted))
        self._journal: dict[str, dict[str, Any]] = {}
        for number, line in read_log(self._file) if self._file.is_file() else ():
            if not isinstance(line.get("id"), str):
                raise StorageError(f"{self._file}, line {number} is no line of a journal", "remove that line")
            self._journal[line["id"]] = line

    def run(self) -> None:
        """Fetch each address once, from the host that is ready first."""
        todo = [name for name in self._wanted if not self._is_settled(name)]
        ids: dict[str, list[str]] = {}
        for name in todo:
            ids.setdefault(self._wanted[name], []).append(name)
        hosts: dict[str, Host] = {}
        for address in list(ids)[: self._options.limit]:
            host = hosts.setdefault(_host_of(address), Host(wait=1 / self._options.rate))
            host.jobs.append((address, ids[address]))
        # Half a line that a kill left goes.
        write_text(self._file, "".join(f"{json.dumps(line)}\n" for line in self._journal.values()))
        with task("downloading", len(self._wanted), "images", len(self._wanted) - len(todo)) as self._bar:
            while hosts:
                name, host = min(hosts.items(), key=lambda one: one[1].ready)
                _wait_until(host.ready)
                if why := self._next(host):
                    self.result.given_up[name] = why
                if why or not host.jobs:
                    del hosts[name]
        for name, address in self._wanted.items():
            if (line := self._journal.get(name, {})).get("address") == address:
                self.result.there += "file" in line
                self.result.failures += [line] if "error" in line else []

    def _is_settled(self, name: str) -> bool:
        line, folder = self._journal.get(name, {}), self._options.out
        if line.get("address") != self._wanted[name]:
            return False
        if "error" in line:
            return self._options.retry_failed is False
        file = folder / str(line["file"])
        return file.is_file() and file.stat().st_size == int(line["bytes"])

    def _next(self, host: Host) -> str:
        """Fetch a host's next image; return why the others are left for another time, empty where they are not."""
        address, ids = host.jobs[0]
        try:
            self._keep(address, ids, self._image(host, address))
            host.failed = 0
        except Trouble as trouble:
            host.attempts += 1
            wait = max(trouble.after, self._options.back_off * 2 ** (host.attempts - 1))
            if trouble.again and wait > _LONGEST_WAIT:
                return f"asks to wait {wait:,.0f} s"
            if trouble.again and host.attempts < self._options.attempts:
                host.ready = time.monotonic() + wait
                return ""
            self._note(address, ids, {"kind": trouble.kind, "error": str(trouble)})
            host.failed = host.failed + 1 if trouble.again else 0
            if host.failed == _DEAD_AFTER:
                return str(trouble)
        host.jobs.popleft()
        host.attempts = 0
        return ""

    def _image(self, host: Host, address: str) -> bytes:
        if host.robots is None and not self._options.ignore_robots:
            host.robots = self._robots(host, address)
        if host.robots is not None and not host.robots.can_fetch(_AGENT, address):
            raise Trouble("robots", "its host's robots.txt does not allow it")
        content = self._get(host, address)
        try:
            image = decode_image(content, "the image")
        except ImageError as error:
            raise Trouble("no image", error.message) from None
        if min(image.size) < _LEAST_SIDE:
            raise Trouble(
                "placeholder", f"{image.width} × {image.height} pixels stand for an image that is missing"
            )
        return content

    def _robots(self, host: Host, address: str) -> RobotFileParser:
        robots, parts = RobotFileParser(), urlsplit(address)
        try:
            text = self._get(host, f"{parts.scheme}://{parts.netloc}/robots.txt").decode(errors="replace")
        except Trouble as trouble:
            if trouble.again:
                raise
            text = "User-agent: *\nDisallow: /" if trouble.kind in _REFUSED else ""
        robots.parse(text.splitlines())
        host.wait = max(host.wait, min(float(robots.crawl_delay(_AGENT) or 0), _LONGEST_WAIT))
        _wait_until(time.monotonic() + host.wait)
        return robots

    def _get(self, host: Host, address: str) -> bytes:
        import httpx

        host.ready, content = time.monotonic() + host.wait, bytearray()
        try:
            with self._client.stream("GET", address) as answer:
                if answer.status_code != 200:
                    after = answer.headers.get("retry-after", "")
                    seconds = float(after) if after.isascii() and after.isdigit() else 0.0
                    status = answer.status_code
                    raise Trouble(f"status {status}", again=status in _AGAIN, after=seconds)
                for part in answer.iter_bytes(_BLOCK):
                    content += part
                    if len(content) > self._options.max_bytes:
                        raise Trouble("too large", f"more than {self._options.max_bytes:,} bytes")
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise Trouble("address", f"{address[:200]!r} leads to no http address: {error}") from None
        except httpx.TransportError as error:
            raise Trouble(type(error).__name__, str(error), again=True) from None
        except httpx.HTTPError as error:
            raise Trouble(type(error).__name__, str(error)) from None
        return bytes(content)

    def _keep(self, address: str, ids: Sequence[str], content: bytes) -> None:
        ending = _ending(content)
        for name in ids:
            file = f"{picture_name(name)}.{ending}"
            write_bytes(self._options.out / file, content)
            for other in _ENDINGS - {ending}:  # an earlier one of the same item
                (self._options.out / f"{picture_name(name)}.{other}").unlink(missing_ok=True)
            self._note(address, [name], {"file": file, "bytes": len(content)})
        self.result.fetched += len(ids)

    def _note(self, address: str, ids: Sequence[str], entry: Mapping[str, Any]) -> None:
        with open(self._file, "a", encoding="utf-8") as handle:
            for name in ids:
                self._journal[name] = {"id": name, "address": address, **entry}
                handle.write(f"{json.dumps(self._journal[name])}\n")
                self._bar.advance()


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""  # it will fail at once


def _check_public(request: httpx.Request) -> None:
    """Refuse a host inside a private network: a list of addresses must not reach what is behind the firewall."""
    try:
        found = socket.getaddrinfo(request.url.host, request.url.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Trouble("unreachable", str(error), again=True) from None
    for number in {str(one[4][0]).split("%")[0] for one in found}:
        address = ipaddress.ip_address(number)
        inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
        if not inner.is_global or inner.is_multicast:
            raise Trouble(
                "private", f"{request.url.host} leads to {number}, which is not on the public internet"
            )


def _wait_until(moment: float) -> None:
    check_stop()
    while (left := moment - time.monotonic()) > 0:
        time.sleep(min(left, 0.2))
        check_stop()


def _ending(content: bytes) -> str:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        return {"jpeg": "jpg", "tiff": "tif"}.get(str(image.format).lower(), str(image.format).lower())


def download(options: FetchOptions) -> Downloads:
    """Fetch images into a folder as ``NAME.ENDING``, NAME as :func:`~diptych.data.products.picture_name` says.

    What is there is not fetched again, what failed only if asked. Bytes are kept as they came, once they were decoded.
    Killed at any moment, the same call resumes. Proxies of the environment are not used.

    Raises:
        Interrupted: a stop was asked for; the same call resumes.
    """
    httpx, wanted, folder = require("httpx", "downloads", "downloading images"), options.wanted(), options.out
    check_replaceable(folder, JOURNAL)
    hooks = {"request": [] if options.allow_private else [_check_public]}
    client = httpx.Client(
        headers={"User-Agent": f"{_AGENT}/{__version__} (+{options.contact})", "Accept": "image/*"},
        timeout=options.timeout,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        trust_env=False,
        event_hooks=hooks,
    )
    with exclusive_folder(folder), client:
        fetching = _Fetching(options, wanted, client)
        fetching.run()
    return fetching.result
