"""Making a shop log, once, and finding it again.

What a visitor does depends on (seed, visitor's number, zone, days, effects) alone, so a log of more visitors begins
with the visitors of a smaller one, and memory is that of a block of visitors. Events are ordered by time
inside a block; blocks follow each other by visitors, and a log with dirt is in no order: whoever reads one has to
sort it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import atomic_folder, cache_root, one_at_a_time, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task
from diptych.data.scenes.made_once import Wanted, found, refuse_strange, sizes_hold
from diptych.data.scenes.shop_log.calendar import FIRST_DAY, Calendar
from diptych.data.scenes.shop_log.columns import DATASET, MARKER, ORACLE, TRUTH, VERSION, event_files
from diptych.data.scenes.shop_log.counts import Counts
from diptych.data.scenes.shop_log.dirt import RULES, busy_bot, spoil
from diptych.data.scenes.shop_log.effects import Effects
from diptych.data.scenes.shop_log.events import events_of
from diptych.data.scenes.shop_log.expected import expected
from diptych.data.scenes.shop_log.oracle import oracle_table
from diptych.data.scenes.shop_log.raw import raw_table
from diptych.data.scenes.shop_log.statistics import bought_before, statistics_of
from diptych.data.scenes.shop_log.usual import DEFAULT
from diptych.data.scenes.shop_log.visits import visits_of
from diptych.data.scenes.shop_log.world import World
from diptych.data.scenes.shop_log.writing import FORMATS, CsvFile, ParquetFiles

__all__ = ["make_shop_log"]

_BLOCK = 4096
"""Visitors."""

_USUAL_DIRT = 0.01
_MOST_VISITORS = 2**32 // 8
_MOST_DAYS = 3660


@dataclass(frozen=True)
class _Parameters:
    visitors: int
    days: int
    seed: int
    zone: str
    dirt: float
    format: str
    effects: Effects

    def check(self) -> None:
        if not 1 <= self.visitors <= _MOST_VISITORS:
            raise UsageError(f"{self.visitors} visitors were asked for", f"give 1 to {_MOST_VISITORS:,}")
        if not 1 <= self.days <= _MOST_DAYS:
            raise UsageError(f"{self.days} days were asked for", f"give 1 to {_MOST_DAYS:,}")
        if not 0 <= self.dirt <= 1:
            raise UsageError(f"a share of {self.dirt} of dirt was asked for", "give 0 to 1, or True")
        if self.format not in FORMATS:
            raise UnknownNameError("format", self.format, FORMATS)

    def said(self) -> dict[str, Any]:
        """What ``dataset.json`` says of them."""
        named = {key: getattr(self, key) for key in ("visitors", "days", "seed", "zone", "dirt", "format")}
        return {
            **named,
            "effects": "usual" if self.effects == DEFAULT else fingerprint(self.effects.to_dict()),
        }

    def fingerprint(self) -> str:
        return fingerprint(DATASET, VERSION, self.said(), self.effects.to_dict())

    def wanted(self) -> Wanted:
        return Wanted(DATASET, "a shop log", VERSION, self.fingerprint(), self.said())


def make_shop_log(
    folder: Path | str | None = None,
    *,
    visitors: int = 2000,
    days: int = 28,
    seed: int = 0,
    zone: str = "Europe/Amsterdam",
    dirt: float | bool = 0.0,
    format: str = "csv",
    effects: Effects = DEFAULT,
) -> Path:
    """Make a log of a shop with planted effects, or find the one made earlier.

    Args:
        folder: where to; None is the cache, under a name that stands for all parameters.
        visitors: customers and anonymous visitors; each has 2.6 sessions of 6 events in 28 days, on average.
        days: on which sessions begin, from 1 October 2019 on; the last ones may end a day later.
        seed: the same seed gives the same log.
        zone: of the shop's clocks.
        dirt: share of events and of sessions that are spoilt in each of several ways, on top of the log; True is
            1 %. See :mod:`diptych.data.scenes.shop_log.dirt`.
        format: ``csv`` or ``parquet``.
        effects: what is planted.

    Returns:
        The folder, whole: the events in the columns of :data:`~diptych.data.scenes.shop_log.columns.RAW_COLUMNS`
        (``events.csv.gz`` or ``events/part-*.parquet``), ``dataset.json`` (what was asked for), ``truth.json``
        (planted parameters, what is expected of them, the statistics of the log as drawn, rows of dirt by rule) and
        ``oracle.parquet`` (the best possible probabilities, see :mod:`diptych.data.scenes.shop_log.oracle`).

    Raises:
        UsageError: a number or the zone is none, or ``folder`` holds something else.
        MissingExtraError: pyarrow is not installed.
        StorageError: it could not be written; nothing half-made is left under its name.
    """
    rate = _USUAL_DIRT if dirt is True else float(dirt)
    parameters = _Parameters(visitors, days, seed, zone, rate, format, effects)
    parameters.check()
    world = World.of(effects, Calendar(zone, days), seed)
    if folder is not None:
        return _made(Path(folder), parameters, world)
    target = cache_root() / DATASET / parameters.fingerprint()
    if _is_whole(target, parameters.wanted()):
        return target
    with one_at_a_time(target):
        return _made(target, parameters, world)


def _made(target: Path, parameters: _Parameters, world: World) -> Path:
    wanted = parameters.wanted()
    if _is_whole(target, wanted):
        return target
    refuse_strange(target, wanted)
    with atomic_folder(target) as temporary:
        _write_log(temporary, parameters, world)
    return target


def _write_log(folder: Path, parameters: _Parameters, world: World) -> None:
    counts = Counts(world.effects.queries)
    dirt: Counter[str] = Counter(dict.fromkeys(RULES, 0))
    files = folder / event_files(parameters.format)
    log = CsvFile(files) if parameters.format == "csv" else ParquetFiles(files)
    with (
        log,
        ParquetFiles(folder / ORACLE) as oracle,
        task("making a log", parameters.visitors, "visitors") as bar,
    ):
        for start in range(0, parameters.visitors, _BLOCK):
            numbers = np.arange(start, min(start + _BLOCK, parameters.visitors))
            visits = visits_of(world, numbers)
            events = events_of(world, visits)
            if parameters.dirt:
                events, added = spoil(world, events, parameters.dirt)
                dirt.update(added)
            log.write(raw_table(world, events))
            oracle.write(oracle_table(world, visits))
            counts.add(visits)
            bar.advance(len(numbers))
        if parameters.dirt:
            bot = busy_bot(world)
            log.write(raw_table(world, bot))
            dirt["too many events"] += len(bot)
    write_json(folder / TRUTH, _truth(world, counts, dirt))
    written = sorted(file for file in folder.rglob("*") if file.is_file())
    write_json(
        folder / MARKER,
        {
            "dataset": DATASET,
            "version": VERSION,
            "fingerprint": parameters.fingerprint(),
            **parameters.said(),
            "first_day": str(FIRST_DAY),
            "files": {file.relative_to(folder).as_posix(): file.stat().st_size for file in written},
        },
    )


def _truth(world: World, counts: Counts, dirt: Counter[str]) -> dict[str, Any]:
    return {
        "effects": world.effects.to_dict(),
        "expected": expected(world),
        "statistics": statistics_of(counts),
        "bought_before": bought_before(counts),
        "events": counts.totals["events"],
        "rows": counts.totals["events"] + sum(dirt.values()),
        "dirt": dict(dirt),
    }


def _is_whole(folder: Path, wanted: Wanted) -> bool:
    """Whether ``folder`` holds exactly this log, with every file in its length."""
    header = found(folder, wanted)
    return header is not None and sizes_hold(folder, header["files"].items())
