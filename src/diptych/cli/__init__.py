"""One file per verb; ``main`` is the command ``diptych``."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["main"]

_INTERRUPTED = 130

# What is printed on a terminal that has no character for it; any other becomes a question mark.
_ASCII = dict(
    zip(
        map(ord, "×–—−→…≤≥≠≈±·•∞█━─"),
        ["x", "-", "-", "-", "->", "...", "<=", ">=", "!=", "~", "+-", ".", "*", "inf", "#", "-", "-"],
        strict=True,
    )
)


def main() -> None:
    """Run the command line; errors of ours are one line and a hint, exit code 1 or 2."""
    with _ctrl_c_ends():
        _print_what_the_terminal_can()
        from diptych.cli import console, verbs
        from diptych.cli.tree import app
        from diptych.core.errors import DiptychError
        from diptych.core.processes import keep_freed_memory

    keep_freed_memory()
    try:
        try:
            sys.exit(verbs.run(app))
        except DiptychError as error:
            sys.exit(console.fail(error))
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except OSError as error:
        sys.exit(_unwritten(error))


@contextmanager
def _ctrl_c_ends() -> Iterator[None]:
    """End at once on Ctrl-C: nothing is lost while libraries are imported, and some turn it into other errors."""
    if (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):  # ignored, as of a job in the background
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _print_what_the_terminal_can() -> None:
    """Let standard output and errors replace what their encoding has no character for."""
    import codecs

    def replaced(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        text = error.object[error.start : error.end].translate(_ASCII)
        return text.encode("ascii", "replace").decode(), error.end

    codecs.register_error("diptych", replaced)
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if encoding != "utf8" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="diptych")


def plain(text: str) -> str:
    """Return help as this terminal can print it: the parser writes UTF-8 to any that says it knows only ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    return text if encoding == "utf8" else text.translate(_ASCII)


def _unwritten(error: OSError) -> int:
    """Say in one line what the system refused; what is left in the buffers is dropped."""
    if error.filename is None:
        message, fix = (
            f"cannot write the output: {error.strerror}",
            "print to another place; files are written",
        )
    else:
        message, fix = f"{error.filename}: {error.strerror}", "check the path and its permissions"
    for stream in (sys.stdout, sys.stderr):
        _drop(stream)
    if error.errno != errno.EPIPE:
        from diptych.core.table import harmless

        os.write(2, harmless(f"error: {message}\n  fix: {fix}\n").encode("ascii", "backslashreplace"))
    return 1


def _drop(stream: IO[str]) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
