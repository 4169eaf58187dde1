"""What surrounds every request: its id, who may ask, limits, a line in the log, counters."""

import asyncio
import hmac
import itertools
import json
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from diptych.core.errors import DiptychError
from diptych.service.options import ServeOptions
from diptych.service.problems import ProblemError, problem, unforeseen

logger: logging.Logger = logging.getLogger("diptych.service")

COOKIE = "diptych_token"
_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_OPEN = ("/v1/health", "/static/")  # answered without a token
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SECURITY = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PAGE_POLICY = (
    "default-src 'none'; img-src 'self' data: blob:; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-src 'self'; frame-ancestors 'none'"
)


class Counters:
    """What ``GET /metrics`` shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("diptych_requests", "Requests.", ["route", "status"], **here)
        self.seconds = Histogram(
            "diptych_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, **here
        )
        self.batches = Histogram(
            "diptych_batch_items", "Items done together.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256), **here
        )
        self.waits = Histogram("diptych_queue_seconds", "Time in the queue.", buckets=_SECONDS, **here)
        self.waiting = Gauge("diptych_queue_items", "Items that wait.", **here)
        self.items = Gauge("diptych_index_items", "Items of an index.", ["index"], **here)
        self.cached = Counter("diptych_cache_hits", "Answers from the cache.", **here)
        self.swaps = Counter("diptych_index_swaps", "Times that an index was replaced.", **here)

    def batch(self, jobs: int, items: int, waited: float) -> None:
        """Count a batch of a lane."""
        self.batches.observe(items)
        self.waits.observe(waited)


class _Exchange:
    """One request and its answer on their way."""

    def __init__(self, scope: Any, receive: Any, send: Any, most: int) -> None:
        self._scope, self._receive, self._send, self._most = scope, receive, send, most
        self.status, self.received, self.sent = 0, 0, 0
        self.too_large: DiptychError | None = None

    async def receive(self) -> Any:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        if self.received > self._most:
            self.too_large = too_large(self.received, self._most)
            raise self.too_large
        return message

    async def send(self, message: Any) -> None:
        if self.too_large is not None:
            return  # what the framework makes of it; the guard answers
        if message["type"] == "http.response.start":
            self.status = message["status"]
            have = {name for name, _ in message["headers"]}
            extra = {"x-request-id": self._scope["request_id"], **_SECURITY}
            new = [
                (name.encode(), value.encode()) for name, value in extra.items() if name.encode() not in have
            ]
            message["headers"] = [*message["headers"], *new]
        self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, error: DiptychError) -> None:
        """Answer with a problem, unless an answer has begun: then it ends here."""
        self.too_large = None
        if not self.status:
            await problem(error, self._scope["request_id"])(self._scope, self._receive, self.send)


class Guard:
    """An ASGI application around another one; ``act`` answers JSON for ``path`` without the other's slow routing."""

    def __init__(
        self,
        app: Any,
        serving: Any,
        counters: Counters,
        path: str,
        act: Callable[[bytes], Awaitable[Response]],
    ) -> None:
        self.app, self.serving, self._path, self._act = app, serving, path, act
        self.options: ServeOptions = serving.options
        self._is_local = self.options.is_local
        self._requests = lru_cache(counters.requests.labels)
        self._seconds = lru_cache(counters.seconds.labels)
        self._direct = "POST", path, "application/json"
        self._most = int(self.options.max_body * 1_000_000)
        self._prefix, self._numbers = uuid.uuid4().hex[:12], itertools.count(1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        scope["request_id"] = given if _ID.fullmatch(given) else f"{self._prefix}-{next(self._numbers):x}"
        begun, exchange = time.perf_counter(), _Exchange(scope, receive, send, self._most)
        error: DiptychError | None = None
        try:
            self._admit(scope, headers)
            async with asyncio.timeout(self.options.timeout):
                if (scope["method"], scope["path"], headers.get("content-type")) == self._direct:
                    response = await self._act(await Request(scope, exchange.receive).body())
                    await response(scope, exchange.receive, exchange.send)
                else:
                    await self.app(scope, exchange.receive, exchange.send)
            error = exchange.too_large
        except TimeoutError:
            late = f"no answer within {self.options.timeout:g} s"
            error = ProblemError(503, late, "send it again later", {"Retry-After": "1"})
        except DiptychError as refused:
            error = refused
        except ClientDisconnect:  # no client waits for an answer
            exchange.status = 499
        except Exception:
            logger.exception("request %s failed", scope["request_id"])
            error = unforeseen()
        if error is not None:
            await exchange.refuse(error)
        self._count(scope, exchange, time.perf_counter() - begun)

    def _count(self, scope: Any, exchange: _Exchange, took: float) -> None:
        route = getattr(scope.get("route"), "path", self._path if scope["path"] == self._path else "none")
        self._requests(route, str(exchange.status)).inc()
        self._seconds(route).observe(took)
        if self.options.log:
            line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "request": scope["request_id"]}
            line |= {"method": scope["method"], "route": route, "status": exchange.status}
            line |= {"ms": round(1000 * took, 2), "received": exchange.received, "sent": exchange.sent}
            logger.info(json.dumps(line))

    def _admit(self, scope: Any, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._most:
            raise too_large(int(length), self._most)
        origin = headers.get("origin")
        try:
            host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
            page = urlsplit(origin or "").netloc
        except ValueError as wrong:
            raise ProblemError(
                400, f"Host or Origin is no address: {wrong}", "send it as a browser does"
            ) from None
        # A page elsewhere whose name was made to lead here (DNS rebinding) sends its own name.
        if self._is_local and host not in (*_LOCAL_HOSTS, self.options.host):
            raise ProblemError(403, f"the host {host!r} is not this machine", "use localhost or 127.0.0.1")
        if origin and scope["method"] not in ("GET", "HEAD") and page != headers.get("host"):
            raise ProblemError(
                403, f"a page of {origin} may not send requests here", "send them from a program"
            )
        token = self.options.token
        if token is None or scope["path"].startswith(_OPEN):
            return
        kind, _, sent = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            sent = _cookie(headers.get("cookie", "")) or _from_address(scope)
        if not hmac.compare_digest(sent.strip().encode(), token.encode()):
            needed = {"WWW-Authenticate": "Bearer"}
            raise ProblemError(401, "a token is needed", "Authorization: Bearer TOKEN", needed)


def too_large(size: int, most: int) -> ProblemError:
    message = f"the body has {size / 1e6:,.1f} MB or more, {most / 1e6:g} MB are allowed"
    return ProblemError(413, message, "send less at a time")


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return str(found.value) if found else ""


def _from_address(scope: Any) -> str:
    """Return the token of the page's first address, ``/?token=…``, which then sets the cookie."""
    if scope["path"] != "/" or scope["method"] != "GET":
        return ""
    return str(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])
