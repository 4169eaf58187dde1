"""Fetching what one address gives: redirects, sizes, times and errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from diptych.core.extras import require
from diptych.data.downloads.addresses import host_of, proper_address
from diptych.data.downloads.options import DownloadOptions
from diptych.data.downloads.trouble import Trouble
from diptych.data.downloads.turns import Turns

if TYPE_CHECKING:
    import httpcore

_REDIRECTS = (301, 302, 303, 307, 308)
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_KINDS = {401: "refused", 403: "refused", 404: "not found", 410: "not found", 429: "too many", 451: "refused"}


class Fetched:
    """What an address gave.

    Attributes:
        content: its bytes.
        kind: what the host says that it is, ``image/jpeg``.
        address: where it was in the end.
    """

    def __init__(self, content: bytes, kind: str, address: str) -> None:
        self.content, self.kind, self.address = content, kind, address


class Fetcher:
    """Connections to many hosts; may be used by several threads at once."""

    def __init__(self, options: DownloadOptions, turns: Turns) -> None:
        require("httpcore", "downloads", "downloading pictures")
        import httpcore

        from diptych.data.downloads.network import CheckedNetwork

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
        """The content at ``address``, redirects followed.

        Args:
            max_bytes: more is refused, at the latest when so much has come.
        """
        here = proper_address(address)
        for _ in range(self._options.redirects + 1):
            if allowed is not None:
                allowed(here)
            try:
                with self._turns.turn(host_of(here)):
                    found = self._asked(here, max_bytes, accept)
            except Trouble as trouble:
                trouble.host = host_of(here)
                raise
            if isinstance(found, Fetched):
                return found
            here = proper_address(_joined(here, found))
        raise Trouble("redirects", f"more than {self._options.redirects} redirects, the last to {here}")

    def _asked(self, address: str, max_bytes: int, accept: str) -> Fetched | str:
        """What one request gives; errors of the network become troubles."""
        import httpcore

        until = time.monotonic() + self._options.seconds
        try:
            return self._one(address, max_bytes, until, accept)
        except httpcore.ReadTimeout:
            silence = f"nothing came for {self._options.timeout:g} s"
            raise Trouble("slow", silence, again=True) from None
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            reason = str(error) or f"no connection within {self._options.timeout:g} s"
            raise Trouble("unreachable", reason, again=True, of_host=True) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise Trouble("cut", f"the answer was cut: {error or type(error).__name__}", again=True) from None

    def _one(self, address: str, max_bytes: int, until: float, accept: str) -> Fetched | str:
        """The content, or where the host says that it is."""
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
