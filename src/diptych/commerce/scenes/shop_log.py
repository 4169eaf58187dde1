"""Generated shop logs: what visitors of a shop do and which of them buy, with planted effects.

What a visitor does depends on (seed, visitor's number, zone, days, effects) alone, so a log of more visitors begins
with the visitors of a smaller one, and memory is that of a block of visitors. Events are ordered by time inside a
block; blocks follow each other by visitors, and a log with dirt is in no order. ``shop_log.toml`` says what the columns
mean and what is planted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from diptych.commerce.logs.schema import SECOND, zone_of
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import parameter
from diptych.core.reading import read_toml
from diptych.core.table import Table
from diptych.data.scenes.generator import (
    Generator,
    GeneratorOptions,
    parts_of,
    sizes_of,
    with_changes,
)

SHOP = read_toml(Path(__file__).with_suffix(".toml"))

RAW_COLUMNS: Mapping[str, str] = SHOP["columns"]  # name → meaning, in order
ACTIONS: Mapping[str, str] = SHOP["actions"]
DEVICES: Mapping[str, str] = SHOP["devices"]  # the log's spelling → the canonical one
COUNTRIES: tuple[str, ...] = tuple(SHOP["countries"])
MOST_EVENTS: int = SHOP["most_events"]
EFFECTS: Mapping[str, Any] = SHOP["effects"]
"""What is planted in the usual shop."""

FIRST_DAY = date(2019, 10, 1)  # as in thesis section 6.3; on the 27th clocks are set back in Europe
HOUR = 3600 * SECOND
DAY = 24 * HOUR
_EPOCH, _US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

TRUTH = "truth.json"


def event_files(file_format: str) -> str:
    """Return where the events are, as a pattern inside the folder: of ``csv`` or ``parquet``."""
    return "events.csv.gz" if file_format == "csv" else "events/part-*.parquet"


class Calendar:
    """Conversions between local and universal time in microseconds, vectorised."""

    def __init__(self, zone: str, days: int) -> None:
        here, first_day = zone_of(zone), (FIRST_DAY - _EPOCH.date()).days
        self.days_us = (first_day + np.arange(days)) * DAY  # local midnights
        # clocks are looked at every half hour, from two days before to some after, which a long session may run into
        moments_us = np.arange(48 * (first_day - 2), 48 * (first_day + days + 7)) * (HOUR // 2)
        moments = [(_EPOCH + int(t_us) * _US).astimezone(here) for t_us in moments_us]
        offsets = np.array([(moment.utcoffset() or timedelta()) // _US for moment in moments], np.int64)
        new = np.flatnonzero(np.diff(offsets)) + 1
        self._changes, self._offsets = moments_us[new], offsets[[0, *new]]

    def local_us(self, t_us: np.ndarray) -> np.ndarray:
        """Return the local time, as microseconds since 1970-01-01 in local time."""
        local_us: np.ndarray = t_us + self._offsets[np.searchsorted(self._changes, t_us, side="right")]
        return local_us

    def universal_us(self, local_us: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Return the universal time of a local one.

        Args:
            local_us: microseconds since 1970-01-01 in local time.
            later: (n,) bool, which one is meant where clocks show the same time twice. A time that clocks skip is
                read by the offset of before or of after: they will show another one.
        """
        earlier, after = (
            self._offsets[np.searchsorted(self._changes + offsets, local_us, side="right")]
            for offsets in (self._offsets[:-1], self._offsets[1:])
        )
        t_us: np.ndarray = local_us - np.where(later, after, earlier)
        return t_us


def week_day(local_us: np.ndarray) -> np.ndarray:
    """0 is Monday."""
    return (local_us // DAY + 3) % 7  # 1970-01-01 was a Thursday


class ShopLogOptions(GeneratorOptions):
    """What a generated log is like."""

    visitors: int = parameter(2000, "Each has about 15 events in 28 days.", ge=1, le=2**32 // 8)
    days: int = parameter(28, "From 1 October 2019 on.", ge=1, le=3660)
    zone: str = parameter("Europe/Amsterdam", "Of the shop's days and hours.")
    dirt: Annotated[float, BeforeValidator(lambda dirt: 0.01 if dirt is True else dirt)] = parameter(
        0.0, "Share of the log that is spoilt in each of several ways.", ge=0, le=1
    )
    format: Literal["csv", "parquet"] = parameter("csv", "Of its files.")


class ShopLog(Generator):
    """Files of raw events, and ``truth.json`` with what is planted and how much there is."""

    dataset = "shop-log"
    noun = "a shop log"
    command = "diptych data shop-log"
    version = 2
    unit = "visitors"
    block = 4096

    def __init__(self, given: ShopLogOptions, effects: Mapping[str, Any]) -> None:
        from diptych.commerce.scenes.visits import World

        self.given, self.world = given, World(effects, Calendar(given.zone, given.days), given.seed)
        kind = "usual" if effects == EFFECTS else fingerprint(effects)
        # one process: tables would wait in memory for the one that writes them
        super().__init__({**given.model_dump(), "effects": kind}, given.visitors, 1, effects)

    def chunks(self) -> list[range]:
        """Return the numbers of visitors, so many at a time, and last none: the bot that a dirty log has."""
        return parts_of(self.total, self.block) + ([range(0)] if self.given.dirt else [])

    def make_chunk(self, folder: Path, chunk: range) -> tuple[Any, Counter[str]]:
        """Return the events of some visitors as a table, and how many there are of what; of dirt by rule."""
        from diptych.commerce.scenes.events import events_of, raw_table, spoil

        events, counts = events_of(self.world, chunk)
        if self.given.dirt:
            events = spoil(self.world, events, self.given.dirt, counts)
        return raw_table(self.world, events), counts

    def write(self, folder: Path, chunks: Iterator[tuple[Any, Counter[str]]]) -> dict[str, Any]:
        """Write the events, and what is true of them."""
        from diptych.commerce.scenes.events import write_tables

        totals: Counter[str] = Counter()
        write_tables(
            (totals.update(counts) or table for table, counts in chunks),
            folder / event_files(self.given.format),
        )
        dirt = {rule: totals.pop(rule, 0) for rule in SHOP["rules"]}
        rows = {"rows": totals["events"] + sum(dirt.values()), "dirt": dirt}
        write_json(folder / TRUTH, {"effects": self.planted, **totals, **rows})
        return {"first_day": str(FIRST_DAY), "files": sizes_of(folder)}


def make_shop_log(
    folder: Path | str | None = None, *, effects: Mapping[str, Any] | None = None, **options: Any
) -> Path:
    """Make a log of a shop with planted effects, or find the one made earlier.

    Args:
        folder: where it is; None for a folder of the cache.
        effects: what is planted otherwise than in ``shop_log.toml``, e.g. ``{"repeat": 0.0}``.
        options: fields of :class:`ShopLogOptions`; ``dirt`` may be True.
    """
    given = ShopLogOptions.read(options, "shop log")
    return ShopLog(given, with_changes(EFFECTS, effects)).make(folder)


def shown(truth: Mapping[str, Any]) -> Table:
    """Return what ``truth.json`` says of the log: its events and sessions, and rows that are no events."""
    counts = {name: n for name, n in truth.items() if isinstance(n, int)} | truth["dirt"]
    return Table.of("a generated log", "", ("", "number"), [(name, f"{n:,}") for name, n in counts.items()])
