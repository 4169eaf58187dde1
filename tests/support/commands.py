"""What a test of the command line gets back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Done(NamedTuple):
    """A finished command: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]
