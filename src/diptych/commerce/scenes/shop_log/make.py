"""Generate a shop log.

What a visitor does depends on (seed, visitor's number, zone, days, effects) alone, so a log of more visitors begins
with the visitors of a smaller one, and memory is that of a block of visitors. Events are ordered by time
inside a block; blocks follow each other by visitors, and a log with dirt is in no order: whoever reads one has to
sort it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from diptych.commerce.scenes.shop_log.chance import DATASET, FIRST_DAY, TRUTH, VERSION, Calendar, event_files
from diptych.commerce.scenes.shop_log.effects import DEFAULT, Effects
from diptych.commerce.scenes.shop_log.events import Events, events_of
from diptych.commerce.scenes.shop_log.raw import RULES, CsvFile, ParquetFiles, busy_bot, raw_table, spoil
from diptych.commerce.scenes.shop_log.sessions import NEVER, Visits, visits_of
from diptych.commerce.scenes.shop_log.world import World
from diptych.core.context import task
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import parameter
from diptych.core.table import Table
from diptych.data.scenes.cached import GeneratedOptions, Specification, cached_dataset, sizes_of

_BLOCK = 4096
"""Visitors."""

_USUAL_DIRT = 0.01
_MOST_VISITORS = 2**32 // 8


def _rate(dirt: Any) -> Any:
    return _USUAL_DIRT if dirt is True else dirt


class ShopLogOptions(GeneratedOptions):
    """What a generated log is like."""

    visitors: int = parameter(2000, "Each has about 15 events in 28 days.", ge=1, le=_MOST_VISITORS)
    days: int = parameter(28, "From 1 October 2019 on.", ge=1, le=3660)
    zone: str = parameter("Europe/Amsterdam", "Of the shop's days and hours.")
    dirt: Annotated[float, BeforeValidator(_rate)] = parameter(
        0.0, "Share of the log that is spoilt in each of several ways.", ge=0, le=1
    )
    format: Literal["csv", "parquet"] = parameter("csv", "Of its files.")


def make_shop_log(folder: Path | str | None = None, *, effects: Effects = DEFAULT, **options: Any) -> Path:
    """Make a log of a shop with planted effects, or find the one made earlier.

    Args:
        folder: where it is; None for a folder of the cache.
        effects: what is planted.
        options: fields of :class:`ShopLogOptions`; ``dirt`` may be True.
    """
    given = ShopLogOptions.read(options, "shop log")
    world = World.of(effects, Calendar(given.zone, given.days), given.seed)
    planted = asdict(effects)
    kind = "usual" if effects == DEFAULT else fingerprint(planted)
    wanted = Specification(
        DATASET, "a shop log", VERSION, {**given.model_dump(), "effects": kind}, (planted,)
    )
    return cached_dataset(
        folder, wanted, lambda target: _write_log(target, world, given.visitors, given.dirt, given.format)
    )


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


def shown(truth: Mapping[str, Any]) -> list[str | Table]:
    """Return what ``truth.json`` says of the sessions, and of rows that are no events."""
    bought, anonymous = (
        f"{truth[what] / truth['sessions']:.1%}" for what in ("purchase sessions", "anonymous sessions")
    )
    spoilt = [(rule, f"{rows:,}") for rule, rows in truth["dirt"].items() if rows]
    return [
        f"a log of {truth['events']:,} events in {truth['sessions']:,} sessions, "
        f"{bought} with a purchase, {anonymous} anonymous",
        *([Table.of("rows that are no events", "", ("rule", "rows"), spoilt)] if spoilt else []),
    ]


def _totals(visits: Visits, events: Events) -> dict[str, int]:
    return {
        "events": len(events),
        "sessions": len(visits.sessions),
        "purchase sessions": int(visits.sessions.purchase.sum()),
        "anonymous sessions": int((visits.sessions.known_page == NEVER).sum()),
    }
