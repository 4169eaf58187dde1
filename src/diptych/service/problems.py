"""Problems: every error of the API as RFC 9457 problem details, with the fix."""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from diptych.core.errors import DiptychError, MissingExtraError, StorageError, UnknownNameError
from diptych.service.lanes import BusyError
from diptych.service.schemas import Problem

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "content": {"application/problem+json": {}}, "description": meaning}
    for status, meaning in {
        400: "A body that cannot be read.",
        401: "A token is needed.",
        403: "Not from there, or not on a service that is read-only.",
        404: "No such index, item or term.",
        413: "Too large, or too many items.",
        422: "What is requested is impossible; the fix says what to do.",
        429: "Too much is waiting; Retry-After says when to come again.",
        501: "The service was installed without what this needs.",
        503: "Not ready, or not answered in time.",
    }.items()
}
"""The answers of every route that are no success."""

_STATUS = {BusyError: 429, MissingExtraError: 501, UnknownNameError: 404, StorageError: 503}


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
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)


def problem(error: DiptychError, request_id: str = "") -> Response:
    """Return an error as a response."""
    status, headers = status_of(error), dict(getattr(error, "headers", {}))
    if isinstance(error, BusyError):
        headers["Retry-After"] = str(error.seconds)
    title = HTTPStatus(status).phrase
    content = {
        "type": f"urn:diptych:problem:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
    }
    content |= {"detail": error.message, "fix": error.fix, "request": request_id}
    return Response(json.dumps(content), status, headers, "application/problem+json")


def unforeseen() -> ProblemError:
    return ProblemError(500, "an error that was not foreseen", "the log has the request's id")


async def on_error(request: Request, error: Exception) -> Response:
    """Answer what the router, the framework or a route raised; the guard logs what was unforeseen."""
    match error:
        case HTTPException():  # no such path, no such method, a body that cannot be read
            fix, headers = "GET /openapi.json lists what there is", dict(error.headers or {})
            known: DiptychError = ProblemError(error.status_code, str(error.detail), fix, headers)
        case RequestValidationError():
            known = invalid(error.errors())
        case DiptychError():
            known = error
        case _:
            known = unforeseen()
    return problem(known, request.scope.get("request_id", ""))


def invalid(errors: Sequence[Any]) -> ProblemError:
    """Return the first fault of a body, with the number of further ones."""
    where = ".".join(str(part)[:60] for part in errors[0]["loc"] if part != "body")
    more = f"; {len(errors) - 1} more" if len(errors) > 1 else ""
    message = errors[0]["msg"].removeprefix("Value error, ") + more
    status = 400 if errors[0]["type"] == "json_invalid" else 422
    return ProblemError(status, f"{where}: {message}" if where else message, "GET /openapi.json")
