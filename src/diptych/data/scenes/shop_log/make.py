"""Making a shop log, once, and finding it again.

What a visitor does depends on (seed, visitor's number, zone, days, effects) alone, so a log of more visitors begins
with the visitors of a smaller one, and memory is that of a block of visitors. Events are ordered by time
inside a block; blocks follow each other by visitors, and a log with dirt is in no order: whoever reads one has to
sort it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import atomic_folder, cache_root, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.data.logs.schema import SECOND, THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.made_once import Wanted, found, refuse_strange, sizes_hold
from diptych.data.scenes.shop_log.chance import (
    DATASET,
    DAY,
    FIRST_DAY,
    MARKER,
    ORACLE,
    TRUTH,
    VERSION,
    Calendar,
    event_files,
)
from diptych.data.scenes.shop_log.counts import Counts
from diptych.data.scenes.shop_log.effects import CLASSES, CONFIRMATION, DEFAULT, PAGE_TYPES, Effects
from diptych.data.scenes.shop_log.events import events_of
from diptych.data.scenes.shop_log.oracle import oracle_table
from diptych.data.scenes.shop_log.raw import FORMATS, RULES, CsvFile, ParquetFiles, busy_bot, raw_table, spoil
from diptych.data.scenes.shop_log.sessions import MONTH, visits_of
from diptych.data.scenes.shop_log.statistics import bought_before, statistics_of
from diptych.data.scenes.shop_log.world import (
    FORCED,
    LEAST_DWELL,
    LONGEST_GAP,
    NO_DEVICE,
    START,
    TYPES,
    World,
)

# What the planted parameters say in closed form, so that what is measured can be held against it.
#
# Everything here is an expectation over all logs of these parameters; one log differs from it by chance. Sessions of
# one visitor are alike (``repeat``), so with it rates of purchases scatter more than those of as many sessions that
# have nothing to do with each other; in a log made with ``repeat = 0`` they do not. Dropping sessions that would
# overlap another one (under 1 %) is left out of account.

_LENGTHS = (1, 2, 3, 5, 8, 12, 20, 50)
_SEARCH = PAGE_TYPES.index("search")


def expected(world: World) -> dict[str, Any]:
    """JSON-able: conversion, times of sessions, device transitions, page chains, dwell times, pages, queries."""
    joint = _joint(world)
    return {
        "rate": float((joint * world.chance).sum()),
        "devices": _conversion(joint, world.chance, THESIS_DEVICES, axis=0),
        "channels": _conversion(joint, world.chance, THESIS_CHANNELS, axis=1),
        "week_days": _over_time(joint, world.chance, axis=2),
        "hours": _over_time(joint, world.chance, axis=3),
        "device_transitions": _transitions(world, joint),
        "page_chains": {name: _chain(world.chains[place]) for place, name in enumerate(CLASSES)},
        "dwell": {name: _dwell(world, place) for place, name in enumerate(CLASSES)},
        "pages_at_least": _pages_at_least(world),
        "queries_per_session": _queries_per_session(world),
    }


def _joint(world: World) -> np.ndarray:
    """(d, c, 7, 24) share of sessions: what a session's device, channel, week day and hour are is independent."""
    effects = world.effects
    visitors = np.array([1 - effects.customers, effects.customers])
    sessions = visitors * (1 + (np.array(effects.sessions) - 1) * world.calendar.days / MONTH)
    devices = sessions @ world.set_shares @ world.stationary / sessions.sum()
    channels = np.array([effects.channels[name] for name in THESIS_CHANNELS])
    days = world.calendar.week_day((world.calendar.first_day + np.arange(world.calendar.days)) * DAY)
    week_days = np.bincount(days, weights=world.day_shares, minlength=7)
    joint: np.ndarray = np.einsum("d,c,w,h->dcwh", devices, channels, week_days, np.array(effects.hours))
    return joint


def _margin(table: np.ndarray, axis: int) -> np.ndarray:
    values: np.ndarray = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
    return values


def _conversion(joint: np.ndarray, chance: np.ndarray, names: Sequence[str], axis: int) -> dict[str, Any]:
    share, bought = _margin(joint, axis), _margin(joint * chance, axis)
    return {
        name: {"share": float(share[place]), "rate": float(bought[place] / share[place])}
        for place, name in enumerate(names)
    }


def _over_time(joint: np.ndarray, chance: np.ndarray, axis: int) -> dict[str, list[float]]:
    """Class → share of its sessions at each place."""
    of_class = (_margin(joint * (1 - chance), axis), _margin(joint * chance, axis))
    return {name: (values / values.sum()).tolist() for name, values in zip(CLASSES, of_class, strict=True)}


def _transitions(world: World, joint: np.ndarray) -> dict[str, dict[str, float]]:
    """From a known customer's session before to a purchase session: the planted transitions among the devices that
    customers have, weighed by the chance that a session on the device is a purchase."""
    had = world.set_shares[1][:, None, None] * world.stationary[:, :, None] * world.moves[:, :NO_DEVICE]
    pairs = had.sum(axis=0) * (_margin(joint * world.chance, 0) / _margin(joint, 0))
    return {
        before: {
            after: float(pairs[row, place] / pairs[row].sum()) for place, after in enumerate(THESIS_DEVICES)
        }
        for row, before in enumerate(THESIS_DEVICES)
        if pairs[row].sum() > 0
    }


def _chain(chain: np.ndarray) -> dict[str, Any]:
    rows = {
        name: dict(zip(PAGE_TYPES, map(float, chain[place]), strict=True))
        for place, name in enumerate(PAGE_TYPES)
    }
    return {"start": dict(zip(PAGE_TYPES, map(float, chain[START]), strict=True)), "next": rows}


def _dwell(world: World, purchase: int) -> dict[str, Any]:
    """Of each page type: the planted logarithm's mean and deviation, and the mean in seconds that follows from them,
    from the cut at one second and 30 minutes and from the gaps of exactly 30 minutes."""
    from scipy.special import ndtr

    low, high = (limits[purchase] for limits in world.dwell_limits)
    mean, spread = world.dwell[purchase], world.spread[purchase]
    edges = (np.log(limit / SECOND) for limit in (LEAST_DWELL, LONGEST_GAP))
    below_low, below_high = (ndtr((edge - mean) / spread - spread) for edge in edges)
    seconds = np.exp(mean + spread**2 / 2) * (below_high - below_low) / (high - low)
    seconds += world.effects.exact_gaps * (LONGEST_GAP / SECOND - seconds)
    return {
        name: {"log_mean": float(mean[place]), "log_sd": float(spread), "mean_seconds": float(seconds[place])}
        for place, name in enumerate((*PAGE_TYPES, CONFIRMATION))
    }


def _pages_at_least(world: World) -> dict[str, dict[str, dict[str, float]]]:
    """Class → device → number of pages → share of sessions with as many or more."""
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in CLASSES}
    for place, device in enumerate(THESIS_DEVICES):
        purchases = np.convolve(world.confirmation[place], world.after)
        for name, shares in zip(CLASSES, (world.others_pages[place], purchases), strict=True):
            found[name][device] = {
                str(pages): min(1.0, float(shares[pages - 1 :].sum())) for pages in _LENGTHS
            }
    return found


def _queries_per_session(world: World) -> dict[str, dict[str, float]]:
    """Class → device → mean number: of the pages of results that the chains come by."""
    after = _visits(world.chains[0], world.after[1:])
    found: dict[str, dict[str, float]] = {name: {} for name in CLASSES}
    for place, device in enumerate(THESIS_DEVICES):
        others = _visits(world.chains[0], world.others_pages[place])
        purchases = _visits(world.chains[1], world.confirmation[place, FORCED:]) + after
        for name, searches, asked in zip(CLASSES, (others, purchases), world.query[place], strict=True):
            found[name][device] = float(searches * asked)
    return found


def _visits(chain: np.ndarray, shares: np.ndarray) -> float:
    """Mean number of pages of results on a chain that has 1, 2, … pages with these shares."""
    at_least = np.cumsum(shares[::-1])[::-1]
    at, total = chain[START], 0.0
    for going_on in at_least:
        total += going_on * at[_SEARCH]
        at = at @ chain[:TYPES]
    return float(total)


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
    """Make a log of a shop with planted effects, or find the one made earlier."""
    rate = _USUAL_DIRT if dirt is True else float(dirt)
    parameters = _Parameters(visitors, days, seed, zone, rate, format, effects)
    parameters.check()
    world = World.of(effects, Calendar(zone, days), seed)
    if folder is not None:
        return _made(Path(folder), parameters, world)
    target = cache_root() / DATASET / parameters.fingerprint()
    if _is_whole(target, parameters.wanted()):
        return target
    with taking_turns(target):
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
