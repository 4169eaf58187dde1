"""Fetching what one address gives: redirects, sizes, times and errors."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import httpcore

from diptych.commerce.downloads.options import DownloadOptions
from diptych.core.extras import require


class Trouble(Exception):
    """A picture did not come; caught and written down, never a person's to see. ``after``: seconds to wait."""

    host: str | None = None  # where it happened, which after a redirect is not where it began

    def __init__(
        self,
        kind: str,
        reason: str,
        *,
        again: bool = False,
        after: float | None = None,
        of_host: bool = False,
    ) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.again, self.after, self.of_host = kind, reason, again, after, of_host


class Stopped(Exception):
    """Asked to stop."""


KEPT = "/%:=&?~+!$,;'@()*[]|"
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses as networks of IPv6 alone write them (RFC 6052)."""


def proper_address(address: str) -> str:
    """Return an address as it is asked for: http or https, a host, in ASCII, without a fragment."""
    shown = address if len(address) <= 200 else address[:200] + "…"
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname, parts.port
        if parts.scheme.lower() not in ("http", "https") or not host:
            raise Trouble("address", f"{shown!r} is no http or https address")
        if parts.username is not None or parts.password is not None:
            raise Trouble("address", f"the address on {host} holds a user name")
        name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
        path, query = quote(parts.path, safe=KEPT) or "/", quote(parts.query, safe=KEPT)
    except ValueError as error:  # UnicodeError is one
        raise Trouble("address", f"{shown!r} is no address: {error}") from None
    place = name if port is None else f"{name}:{port}"
    return urlunsplit((parts.scheme.lower(), place, path, query, ""))


def origin_of(address: str) -> str:
    """Scheme, host and port: what a robots.txt is for."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def host_of(address: str) -> str:
    """Return the host and port that a turn is waited for."""
    return urlsplit(address).netloc


def is_public(number: str) -> bool:
    """Return whether an IP address is one of the public internet: not private, loopback, link-local or multicast."""
    address = ipaddress.ip_address(number.split("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
        elif address.is_reserved or address.is_site_local:  # ::127.0.0.1 is of the reserved ones
            return False
    return address.is_global and not address.is_multicast


class Turns:
    """One request per turn, ``rate`` per second and host; all threads wait for a host's turns together."""

    def __init__(self, rate: float, connections: int, stop: threading.Event) -> None:
        self._between, self._connections, self._stop = 1.0 / rate, connections, stop
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._slower: dict[str, float] = {}
        self._open: dict[str, threading.Semaphore] = {}

    def check(self) -> None:
        """Go on, unless asked to stop."""
        if self._stop.is_set():
            raise Stopped

    def slow_down(self, host: str, seconds: float) -> None:
        """At least so many seconds between two turns of a host (robots.txt may say so)."""
        with self._lock:
            self._slower[host] = max(seconds, self._slower.get(host, 0.0))

    def pause(self, host: str, seconds: float) -> None:
        """No turn of this host for so long."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def next_at(self, host: str) -> float:
        """Return when the host's next turn is, by ``time.monotonic``."""
        with self._lock:
            return self._next.get(host, 0.0)

    @contextmanager
    def turn(self, host: str) -> Iterator[None]:
        """Wait for a turn and have it while the block runs."""
        with self._lock:
            free = self._open.setdefault(host, threading.Semaphore(self._connections))
        while not free.acquire(timeout=0.2):
            self.check()
        try:
            with self._lock:
                now = time.monotonic()
                at = max(now, self._next.get(host, 0.0))
                self._next[host] = at + max(self._between, self._slower.get(host, 0.0))
            if self._stop.wait(max(0.0, at - now)):
                raise Stopped
            yield
        finally:
            free.release()


_REDIRECTS = (301, 302, 303, 307, 308)
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_KINDS = {401: "refused", 403: "refused", 404: "not found", 410: "not found", 429: "too many", 451: "refused"}


class Fetched(NamedTuple):
    """What an address gave."""

    content: bytes
    kind: str  # what the host says that it is, image/jpeg
    address: str  # where it was in the end


class Fetcher:
    """Connections to many hosts; may be used by several threads at once."""

    def __init__(self, options: DownloadOptions, turns: Turns) -> None:
        require("httpcore", "downloads", "downloading pictures")
        import httpcore

        self._options, self._turns = options, turns
        self._pool = httpcore.ConnectionPool(
            max_connections=options.hosts * options.connections + 1,
            max_keepalive_connections=options.hosts * options.connections,
            keepalive_expiry=60.0,
            network_backend=CheckedNetwork(options.allow_private),
        )
        pause = options.timeout
        self._timeout = {"connect": pause, "read": pause, "write": pause, "pool": options.seconds}

    def close(self) -> None:
        """End all connections."""
        self._pool.close()

    def fetch(
        self,
        address: str,
        max_bytes: int,
        allowed: Callable[[str], None] | None = None,
        accept: str = "image/*",
    ) -> Fetched:
        """Return the content at ``address``, redirects followed; more than ``max_bytes`` is refused."""
        import httpcore

        here, pause = proper_address(address), self._options.timeout
        for _ in range(self._options.redirects + 1):
            if allowed is not None:
                allowed(here)
            try:
                with self._turns.turn(host_of(here)):
                    found = self._one(here, max_bytes, time.monotonic() + self._options.seconds, accept)
            except Trouble as trouble:
                trouble.host = host_of(here)
                raise
            except httpcore.ReadTimeout:
                raise self._trouble(here, "slow", f"nothing came for {pause:g} s") from None
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                reason = str(error) or f"no connection within {pause:g} s"
                raise self._trouble(here, "unreachable", reason, of_host=True) from None
            except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
                reason = f"the answer was cut: {error or type(error).__name__}"
                raise self._trouble(here, "cut", reason) from None
            if isinstance(found, Fetched):
                return found
            here = proper_address(_joined(here, found))
        raise Trouble("redirects", f"more than {self._options.redirects} redirects, the last to {here}")

    @staticmethod
    def _trouble(here: str, kind: str, reason: str, of_host: bool = False) -> Trouble:
        trouble = Trouble(kind, reason, again=True, of_host=of_host)
        trouble.host = host_of(here)
        return trouble

    def _one(self, address: str, max_bytes: int, until: float, accept: str) -> Fetched | str:
        """Return the content, or where the host says that it is."""
        headers = [
            ("User-Agent", self._options.user_agent),
            ("Accept", accept),
            ("Accept-Encoding", "identity"),  # what unpacks itself may grow without end
        ]
        asked = self._pool.stream("GET", address, headers=headers, extensions={"timeout": self._timeout})
        with asked as answer:
            told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
            if answer.status in _REDIRECTS and told.get("location"):
                return told["location"]
            if answer.status not in (200, 203):
                again = answer.status in _AGAIN
                raise Trouble(
                    _KINDS.get(answer.status, "server" if answer.status >= 500 else "status"),
                    f"status {answer.status}",
                    again=again,
                    after=retry_after(told.get("retry-after", "")) if again else None,
                    of_host=answer.status in (429, 503),
                )
            encoding = told.get("content-encoding", "identity").lower()
            if encoding not in ("identity", ""):
                raise Trouble("encoding", f"packed as {encoding}, which was not asked for")
            stated = told.get("content-length", "")
            if stated.isascii() and stated.isdigit() and float(stated) > max_bytes:
                raise Trouble("too large", f"{float(stated):,.0f} bytes, more than {max_bytes:,}")
            return Fetched(self._body(answer, max_bytes, until), told.get("content-type", ""), address)

    def _body(self, answer: httpcore.Response, max_bytes: int, until: float) -> bytes:
        parts, size = [], 0
        for part in answer.iter_stream():
            size += len(part)
            self._turns.check()
            if size > max_bytes:
                raise Trouble("too large", f"more than {max_bytes:,} bytes")
            if time.monotonic() > until:
                raise Trouble("slow", f"not whole after {self._options.seconds:g} s", again=True)
            parts.append(part)
        return b"".join(parts)


def _joined(here: str, found: str) -> str:
    try:
        return urljoin(here, found)
    except ValueError as error:
        raise Trouble("address", f"{host_of(here)} leads to {found[:200]!r}, no address: {error}") from None


def retry_after(given: str) -> float | None:
    """Seconds to wait, from a ``Retry-After`` of seconds or of a date; None where it says nothing."""
    given = given.strip()
    if given.isascii() and given.isdigit():
        return float(given)
    try:
        when = parsedate_to_datetime(given)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


class CheckedNetwork(httpcore.SyncBackend):
    """The ordinary network without private and loopback addresses.

    A name in a file of somebody else may lead to a machine behind the firewall, and may do so only at its second
    look-up; so what was checked is what is connected to.
    """

    def __init__(self, allow_private: bool = False) -> None:
        super().__init__()
        self._allow_private = allow_private

    def connect_tcp(self, host: str, port: int, *rest: Any, **options: Any) -> httpcore.NetworkStream:
        """Connect to the first address of ``host`` that answers."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} has no address: {error}") from None
        numbers = list(dict.fromkeys(str(one[4][0]) for one in found))
        for number in numbers if not self._allow_private else ():
            if not is_public(number):
                raise Trouble("private", f"{host} leads to {number}, which is not on the public internet")
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for number in numbers[:4]:
            try:
                return super().connect_tcp(number, port, *rest, **options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed
