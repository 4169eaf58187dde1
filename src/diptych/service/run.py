"""Run the service: a socket, a server, signals, logs."""

import logging
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import uvicorn

from diptych.core.errors import UsageError
from diptych.service.app import create_app
from diptych.service.options import ServeOptions

_STOPPING = 20  # seconds that requests which have begun may take at the end


def run(targets: Sequence[str], options: ServeOptions, started: Callable[[str], None]) -> None:
    """Serve until a signal comes; ``started`` is called with the address when clients can connect."""
    application = create_app(targets, options)
    logger = logging.getLogger("diptych.service")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_STOPPING,
        timeout_keep_alive=75,
        backlog=2048,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
    )
    with _listening(options) as listener:
        host, port = listener.getsockname()[:2]
        shown = "localhost" if host in ("127.0.0.1", "::1") else f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{port}")
        server, serving = uvicorn.Server(config), application.serving
        serving.on_problem = lambda: setattr(server, "should_exit", True)
        with suppress(KeyboardInterrupt):  # the server has ended by then
            server.run([listener])
    logger.removeHandler(handler)
    if serving.problem is not None:
        raise serving.problem


def _listening(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        wrong = f"cannot listen at {options.host}:{options.port}: {error.strerror or error}"
        raise UsageError(wrong, "choose another --port (0: any that is free) or --host") from None
    return listener
