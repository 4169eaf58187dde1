"""What an import is asked to drop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from diptych.core.errors import UsageError


@dataclass(frozen=True)
class Cleaning:
    """Which events are kept; what else is always dropped, such as rows without a time, is in ``rules/``.

    Attributes:
        since: first moment that is kept, ISO 8601; one that names no zone is in the log's.
        until: first moment that is no longer kept.
        countries: only these; all where none is named.
        keep_missing_country: events without a country are kept although countries are named.
        devices: only these device types, as the log has them in lower case; all where none is named.
        bots: keep events whose user agent is a bot's.
        duplicates: keep events that are equal in all columns.
        most_events: of one client; those who have more are dropped whole. None for no limit.
    """

    since: str | None = None
    until: str | None = None
    countries: tuple[str, ...] = ()
    keep_missing_country: bool = False
    devices: tuple[str, ...] = ()
    bots: bool = False
    duplicates: bool = False
    most_events: int | None = 100_000

    def __post_init__(self) -> None:
        if self.most_events is not None and self.most_events < 1:
            raise UsageError(f"most events of a client are {self.most_events}, they must be 1 or more")
        for one in filter(None, map(str.strip, self.countries)):
            if not (len(one) == 2 and one.isascii() and one.isalpha()):
                raise UsageError(f"there is no country {one!r}", "two letters each (ISO 3166), e.g. NL,BE,DE")
        object.__setattr__(self, "countries", _words(one.upper() for one in self.countries))
        object.__setattr__(self, "devices", _words(one.lower() for one in self.devices))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        values: Mapping[str, Any] = asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


@dataclass(frozen=True)
class Period:
    """The same moments in microseconds since 1970 UTC.

    Attributes:
        since_us: the first that is kept, or None.
        until_us: the first that is no longer kept, or None.
    """

    since_us: int | None = None
    until_us: int | None = None

    def __post_init__(self) -> None:
        if self.since_us is not None and self.until_us is not None and self.since_us >= self.until_us:
            raise UsageError("the period is empty: it ends before it begins", "check --since and --until")


def _words(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({one.strip() for one in given if one.strip()}))
