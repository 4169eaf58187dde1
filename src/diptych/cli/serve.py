"""``diptych serve``: search over HTTP, and a page."""

from __future__ import annotations

import secrets
import sys
from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.service.options import ServeOptions

Indexes = Annotated[
    list[str],
    typer.Argument(metavar="INDEX…", help="Indexes, or runs with indexes in them.", show_default=False),
]


def serve(indexes: Indexes, options: ServeOptions) -> None:
    """Serve indexes as an HTTP API and a page to search on.

    Beyond this machine (--host) clients need a token: the one of --token or DIPTYCH_TOKEN, or a new one, which is
    printed. Ctrl-C answers what has begun, then ends.

    Examples:
        diptych serve demo
        diptych serve runs/flickr8k/index-images-exact runs/flickr8k/sparse/index-images-inverted
        diptych serve runs/flickr8k --host 0.0.0.0 --port 80
    """
    for library in ("fastapi", "uvicorn", "python_multipart", "prometheus_client"):
        require(library, purpose="diptych serve")
    from diptych.service.run import run

    if options.no_auth and options.token:
        raise UsageError("--no-auth with a token", "leave one of them out")
    if not options.is_local and not options.no_auth and not options.token:
        options = options.model_copy(update={"token": secrets.token_urlsafe(24)})

    def started(address: str) -> None:
        entry = f"/?token={options.token}" if options.token else ""
        say(f"serving at {address}{entry} (API: {address}/openapi.json)")
        if options.no_auth and not options.is_local:
            say("anyone who reaches this address can search: there is no token")
        say("Ctrl-C ends it")
        allowed = ["-H", f"authorization: Bearer {options.token}"] if options.token else []
        kind = ["-H", "content-type: application/json"]
        next_step(["curl", "-s", f"{address}/v1/search", *allowed, *kind, "-d", '{"text": "a red triangle"}'])
        sys.stdout.flush()

    run(indexes, options, started)
