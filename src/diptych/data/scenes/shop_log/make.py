"""Generate a shop log.

What a visitor does depends on (seed, visitor's number, zone, days, effects) alone, so a log of more visitors begins
with the visitors of a smaller one, and memory is that of a block of visitors. Events are ordered by time
inside a block; blocks follow each other by visitors, and a log with dirt is in no order: whoever reads one has to
sort it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.data.scenes.cached import Specification, cached_dataset, sizes_of
from diptych.data.scenes.shop_log.chance import DATASET, FIRST_DAY, TRUTH, VERSION, Calendar, event_files
from diptych.data.scenes.shop_log.effects import DEFAULT, Effects
from diptych.data.scenes.shop_log.events import Events, events_of
from diptych.data.scenes.shop_log.raw import FORMATS, RULES, CsvFile, ParquetFiles, busy_bot, raw_table, spoil
from diptych.data.scenes.shop_log.sessions import NEVER, Visits, visits_of
from diptych.data.scenes.shop_log.world import World

_BLOCK = 4096
"""Visitors."""

_USUAL_DIRT = 0.01
_MOST_VISITORS = 2**32 // 8
_MOST_DAYS = 3660


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
    if not 1 <= visitors <= _MOST_VISITORS:
        raise UsageError(f"{visitors} visitors were asked for", f"give 1 to {_MOST_VISITORS:,}")
    if not 1 <= days <= _MOST_DAYS:
        raise UsageError(f"{days} days were asked for", f"give 1 to {_MOST_DAYS:,}")
    if not 0 <= rate <= 1:
        raise UsageError(f"a share of {rate} of dirt was asked for", "give 0 to 1, or True")
    if format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    world = World.of(effects, Calendar(zone, days), seed)
    planted = asdict(effects)
    parameters = {
        "visitors": visitors,
        "days": days,
        "seed": seed,
        "zone": zone,
        "dirt": rate,
        "format": format,
        "effects": "usual" if effects == DEFAULT else fingerprint(planted),
    }
    wanted = Specification(DATASET, "a shop log", VERSION, parameters, (planted,))
    return cached_dataset(folder, wanted, lambda target: _write_log(target, world, visitors, rate, format))


def _write_log(folder: Path, world: World, visitors: int, dirt: float, file_format: str) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    spoilt: Counter[str] = Counter(dict.fromkeys(RULES, 0))
    files = folder / event_files(file_format)
    log = CsvFile(files) if file_format == "csv" else ParquetFiles(files)
    with log, task("making a log", visitors, "visitors") as bar:
        for start in range(0, visitors, _BLOCK):
            numbers = np.arange(start, min(start + _BLOCK, visitors))
            visits = visits_of(world, numbers)
            events = events_of(world, visits)
            totals.update(_totals(visits, events))
            if dirt:
                events, added = spoil(world, events, dirt)
                spoilt.update(added)
            log.write(raw_table(world, events))
            bar.advance(len(numbers))
        if dirt:
            bot = busy_bot(world)
            log.write(raw_table(world, bot))
            spoilt["too many events"] += len(bot)
    truth = {
        "effects": asdict(world.effects),
        **totals,
        "rows": totals["events"] + spoilt.total(),
        "dirt": dict(spoilt),
    }
    write_json(folder / TRUTH, truth)
    return {"first_day": str(FIRST_DAY), "files": sizes_of(folder)}


def _totals(visits: Visits, events: Events) -> dict[str, int]:
    return {
        "events": len(events),
        "sessions": len(visits.sessions),
        "purchase sessions": int(visits.sessions.purchase.sum()),
        "anonymous sessions": int((visits.sessions.known_page == NEVER).sum()),
    }
