"""Problems: every error of the API as RFC 9457 problem details, with the fix."""

from __future__ import annotations

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from diptych.core.errors import (
    DataError,
    DiptychError,
    MismatchError,
    MissingExtraError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.service.lanes import BusyError

_TITLES = {
    400: "Bad request",
    401: "Not authorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    501: "Not available",
    503: "Not ready",
}
_STATUS: tuple[tuple[type[DiptychError], int], ...] = (
    (BusyError, 429),
    (MissingExtraError, 501),
    (UnknownNameError, 404),
    (UsageError, 422),
    (DataError, 422),
    (NumericalError, 422),
    (MismatchError, 422),
    (StorageError, 503),
)


class ProblemError(DiptychError):
    """An error with its status."""

    def __init__(
        self, status: int, message: str, fix: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, fix)
        self.status, self.headers = status, headers or {}


def status_of(error: DiptychError) -> int:
    if isinstance(error, ProblemError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem(error: DiptychError, request_id: str = "") -> Response:
    """Return an error as a response."""
    status, headers = status_of(error), dict(getattr(error, "headers", {}))
    if isinstance(error, BusyError):
        headers["Retry-After"] = str(error.seconds)
    title = _TITLES.get(status, "Error")
    content = {
        "type": f"urn:diptych:problem:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
    }
    content |= {"detail": error.message, "fix": error.fix, "request": request_id}
    return Response(json.dumps(content), status, headers, "application/problem+json")


async def on_error(request: Request, error: Exception) -> Response:
    """Answer what a route raised on purpose."""
    assert isinstance(error, DiptychError)
    return problem(error, request.scope.get("request_id", ""))


async def on_http(request: Request, error: Exception) -> Response:
    """Answer what the router raised: no such path, no such method."""
    assert isinstance(error, HTTPException)
    known = ProblemError(
        error.status_code,
        str(error.detail),
        "GET /openapi.json lists what there is",
        dict(error.headers or {}),
    )
    return problem(known, request.scope.get("request_id", ""))


def invalid(errors: list[Any]) -> ProblemError:
    """Return the first fault of a body, with the number of further ones."""
    first = errors[0]
    where = ".".join(str(part)[:60] for part in first["loc"])
    more = f"; {len(errors) - 1} more" if len(errors) > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    return ProblemError(
        422, f"{where}: {message}{more}" if where else f"{message}{more}", "GET /openapi.json"
    )
