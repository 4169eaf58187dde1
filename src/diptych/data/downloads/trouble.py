"""Why a picture did not come."""

from __future__ import annotations


class Trouble(Exception):
    """A picture did not come; caught and written down, never a person's to see.

    Args:
        after: seconds that the host asks to wait.

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
