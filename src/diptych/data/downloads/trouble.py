"""Why a picture did not come."""

from __future__ import annotations

__all__ = ["Stopped", "Trouble"]


class Trouble(Exception):
    """A picture did not come; caught and written down, never a person's to see.

    Args:
        kind: a word to count by: ``not found``, ``robots``, …
        reason: one line.
        again: whether another attempt may help.
        after: seconds that the host asks to wait.
        of_host: whether it says something of the host rather than of the picture.

    Attributes:
        host: where it happened, which after a redirect is not where it began.
    """

    host: str | None = None

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
