"""What surrounds every request: its id, who may ask, limits, a line in the log, counters."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import time
import uuid
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from diptych.core.errors import DiptychError
from diptych.service.options import ServeOptions
from diptych.service.problems import ProblemError, problem

logger: logging.Logger = logging.getLogger("diptych.service")

COOKIE = "diptych_token"
_ID = re.compile(r"[\w.-]{1,64}")
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


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Any, serving: Any, counters: Counters) -> None:
        self.app, self.serving, self.counters = app, serving, counters
        self.options: ServeOptions = serving.options
        self._most = int(self.options.max_body * 1_000_000)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        scope["request_id"] = given if _ID.fullmatch(given) else uuid.uuid4().hex
        begun, status, sent, size = time.perf_counter(), 500, 0, 0

        async def counted_receive() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most:
                raise self._too_large(size)
            return message

        async def marked_send(message: Any) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                have = {name for name, _ in message["headers"]}
                extra = {"x-request-id": scope["request_id"], **_SECURITY}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in extra.items() if k.encode() not in have),
                ]
            sent += len(message.get("body", b""))
            await send(message)

        try:
            self._admit(scope, headers)
            async with asyncio.timeout(self.options.timeout):
                await self.app(scope, counted_receive, marked_send)
        except TimeoutError:
            late = ProblemError(
                503,
                f"no answer within {self.options.timeout:g} s",
                "send it again later",
                {"Retry-After": "1"},
            )
            await self._refuse(late, scope, receive, marked_send, status)
        except DiptychError as error:
            await self._refuse(error, scope, receive, marked_send, status)
        except Exception:
            logger.exception("request %s failed", scope["request_id"])
            broken = ProblemError(500, "an error that was not foreseen", "the log has the request's id")
            await self._refuse(broken, scope, receive, marked_send, status)
        finally:
            took = time.perf_counter() - begun
            route = getattr(scope.get("route"), "path", "none")
            self.counters.requests.labels(route, str(status)).inc()
            self.counters.seconds.labels(route).observe(took)
            if self.options.log:
                line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "request": scope["request_id"]}
                line |= {
                    "method": scope["method"],
                    "route": route,
                    "status": status,
                    "ms": round(1000 * took, 2),
                }
                logger.info(json.dumps(line | {"received": size, "sent": sent}))

    async def _refuse(self, error: DiptychError, scope: Any, receive: Any, send: Any, status: int) -> None:
        try:
            await problem(error, scope["request_id"])(scope, receive, send)
        except RuntimeError:  # the answer had begun: it ends here
            logger.warning("request %s was cut off: %s", scope["request_id"], error.message)

    def _too_large(self, size: int) -> ProblemError:
        limit = f"{self.options.max_body:g} MB"
        return ProblemError(
            413, f"the body has {size / 1e6:,.1f} MB or more, {limit} are allowed", "send less at a time"
        )

    def _admit(self, scope: Any, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._most:
            raise self._too_large(int(length))
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        # A page elsewhere whose name was made to lead here (DNS rebinding) sends its own name.
        if self.options.is_local and host not in (*_LOCAL_HOSTS, self.options.host):
            raise ProblemError(403, f"the host {host!r} is not this machine", "use localhost or 127.0.0.1")
        origin = headers.get("origin")
        if (
            origin
            and scope["method"] not in ("GET", "HEAD")
            and urlsplit(origin).netloc != headers.get("host")
        ):
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
