"""Generated shop logs: what visitors of a shop do and which of them buy, with planted effects.

What a visitor does depends on (seed, visitor's number, zone, days, effects) only, so a log of more visitors begins
with the visitors of a smaller one, and memory is that of a block of visitors. Events are ordered by time inside a
block; blocks follow each other by visitors, and a log with dirt is in no order. ``shop_log.toml`` says what the columns
mean and what is planted.
"""

import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from diptych.commerce.logs.log import SECOND, THESIS_CHANNELS, THESIS_DEVICES
from diptych.commerce.scenes import visits
from diptych.commerce.scenes.visits import (
    CONFIRMATION,
    COUNTRIES,
    DAY,
    FIRST_DAY,
    NOTHING,
    SHOP,
    Calendar,
    Draw,
    Rows,
    ShopWorld,
)
from diptych.core.draws import draw_below, draw_uniform
from diptych.core.extras import require
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import parameter
from diptych.core.table import Table
from diptych.data.scenes.generator import Generator, GeneratorOptions, parts_of, sizes_of, with_changes

RAW_COLUMNS: Mapping[str, str] = SHOP["columns"]  # name → meaning, in order
ACTIONS: Mapping[str, str] = SHOP["actions"]
DEVICES: Mapping[str, str] = SHOP["devices"]  # the log's spelling → the canonical one
MOST_EVENTS: int = SHOP["most_events"]
EFFECTS: Mapping[str, Any] = SHOP["effects"]
"""What is planted in the usual shop."""

TRUTH = "truth.json"
_WORK = "making a shop log"
_TABLES = 32  # blocks of visitors in a Parquet file
_BOT_COOKIE = 1 << 62  # above those of visitors
_NAMES: dict[str, Sequence[str | None]] = {
    "unreadable": ("yesterday", "2019-13-45T25:61:61.000000Z", "n/a", None),  # what stands instead of a time
    "device": (*DEVICES, "Robot"),
    "channel": [name.capitalize() for name in THESIS_CHANNELS],
    "country": (*COUNTRIES, "US", "CN", "BR"),
    "action": list(ACTIONS),
    "page": visits.PAGES,
    "item": [f"p{number:05d}" for number in range(visits.ITEMS)],
}


class ShopLogOptions(GeneratorOptions):
    """Options of a generated log."""

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
        self.given, self.world = given, ShopWorld(effects, Calendar(given.zone, given.days), given.seed)
        kind = "usual" if effects == EFFECTS else fingerprint(effects)
        # one process: tables would wait in memory for the one that writes them
        super().__init__({**given.model_dump(), "effects": kind}, given.visitors, 1, effects)

    def chunks(self) -> list[range]:
        return parts_of(self.total, self.block) + ([range(0)] if self.given.dirt else [])

    def make_chunk(self, folder: Path, chunk: range) -> tuple[Any, Counter[str]]:
        """Return the events of some visitors as a table, and how many there are of what; of dirt by rule."""
        events, counts = events_of(self.world, chunk)
        if self.given.dirt:
            events = spoil(self.world, events, self.given.dirt, counts)
        return raw_table(self.world, events), counts

    def write(self, folder: Path, chunks: Iterator[tuple[Any, Counter[str]]]) -> dict[str, Any]:
        totals: Counter[str] = Counter()
        name = "events.csv.gz" if self.given.format == "csv" else "events/part-*.parquet"
        write_tables((totals.update(counts) or table for table, counts in chunks), folder / name)
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


def events_of(world: ShopWorld, numbers: range) -> tuple[Rows, Counter[str]]:
    """Return all events of visitors, by time, and how many there are of what; of no visitors, a bot's.

    Columns are numbers of values, and NOTHING where there is none.
    """
    if not numbers:
        return _busy_bot(world), Counter()
    sessions, pages = visits.visits_of(world, numbers)
    of = sessions.take(pages.session)
    # a cookie is above 0 and another one for each visitor and device
    place = of.number * len(THESIS_DEVICES) + of.device
    of["cookie"] = ((world.draw(Draw.COOKIE, place) * 2**31).astype(np.int64) << 32) + place
    words = {"ahead": visits.QUERY_AHEAD, "before": SECOND // 2, "recognised": visits.RECOGNISED}
    words |= {"product": visits.PRODUCT, "confirmation": CONFIRMATION}
    database, pa = _database(world.effects["queries"]).cursor(), require("pyarrow", "commerce", _WORK)
    database.register("page", pa.table({**pages, **of, "row": np.arange(len(place))}))
    events = Rows(database.execute(SHOP["events"].format(**words)).fetchnumpy())
    anonymous = int((sessions.known_page == visits.NEVER).sum())
    totals = {"events": len(events.t_us), "sessions": len(sessions.key)}
    totals |= {"purchase sessions": int(sessions.purchase.sum()), "anonymous sessions": anonymous}
    return events, Counter(totals)


def _busy_bot(world: ShopWorld) -> Rows:
    numbers = np.arange(MOST_EVENTS + 500)
    after_us = (world.draw(Draw.BOT, numbers) * (len(world.calendar.days_us) * DAY)).astype(np.int64)
    values = dict.fromkeys(("unreadable", "session", "customer", "query", "item"), NOTHING)
    values |= {"device": list(DEVICES).index("PC"), "channel": 0, "country": 0, "action": 0}
    values |= {"cookie": 2 * _BOT_COOKIE - 1, "purchased": False}
    return Rows(
        {name: np.full(len(numbers), value) for name, value in values.items()},
        t_us=np.sort(world.calendar.days_us[0] + after_us),
        page=draw_below(visits.TYPES, world.seed, Draw.BOT, numbers, 1),
    )


def spoil(world: ShopWorld, events: Rows, rate: float, counts: Counter[str]) -> Rows:
    """Return the events of a block, unordered, among rows that are none, which are counted by rule.

    A part ``rate`` of the events is there twice, once more without cookie and customer, and once more with a time
    that cannot be read; a part ``rate`` of the sessions is there once more from another country, and from no known
    device. All that are no exact copies have cookies of their own. Of the bot, which has no session, all is too many.
    """
    *rules, last = SHOP["rules"]
    if events.session[0] == NOTHING:
        counts[last] = len(events.t_us)
        return events
    spoilt = [events]
    for number, rule in enumerate(rules):
        thing = np.where(rule in ("country", "device"), 0, events.t_us)
        rows = np.flatnonzero(world.draw(Draw.DIRT, number, events.session, thing) < rate)
        some = events.take(rows)
        kind = world.draw(Draw.BOT, number, some.session, thing[rows])
        bot = _BOT_COOKIE + (kind * 2**53).astype(np.int64)
        if rule != "duplicate":
            nothing = np.full(len(bot), NOTHING)
            some |= {"customer": nothing, "cookie": nothing if rule == "no client" else bot}
        if rule == "unreadable time":
            some["unreadable"] = bot % len(_NAMES["unreadable"])
        elif rule == "country":
            some["country"] = len(COUNTRIES) + bot % 3
        elif rule == "device":
            some["device"] = np.where(bot % 2 == 0, NOTHING, len(DEVICES))
        counts[rule] = len(rows)
        spoilt.append(some)
    order = [world.draw(Draw.ORDER, place, one.session, one.t_us) for place, one in enumerate(spoilt)]
    joined = Rows({name: np.concatenate([one[name] for one in spoilt]) for name in events})
    return joined.take(np.argsort(np.concatenate(order), kind="stable"))


def raw_table(world: ShopWorld, events: Rows) -> Any:
    """Return the columns of the raw log: apps write universal time, browsers local time and its offset."""
    pa = require("pyarrow", "commerce", _WORK)
    in_apps = np.isin(events.device, [THESIS_DEVICES.index(name) for name in ("smartphone", "tablet")])
    offset_us = np.where(in_apps, 0, world.calendar.local_us(events.t_us) - events.t_us)
    database = _database(world.effects["queries"]).cursor()
    database.register("events", pa.table({**events, "in_apps": in_apps, "offset_us": offset_us}))
    return database.execute(SHOP["raw"]).to_arrow_table().select(list(RAW_COLUMNS))


@cache
def _database(n_queries: int) -> Any:
    """Return a database with what columns of numbers stand for, as lists."""
    database = require("duckdb", "commerce", _WORK).connect(config={"threads": 1})
    prices = 2 * 400 ** draw_uniform(20191001, np.arange(visits.ITEMS))  # 2 to 800 euros, most low
    lists = {**_NAMES, "query": typed_texts(n_queries), "price": np.round(prices, 2).tolist()}
    database.execute(
        f"CREATE TABLE lists AS SELECT {', '.join(f'? AS {name}' for name in lists)}",
        [list(values) for values in lists.values()],
    )
    return database


def typed_texts(count: int) -> list[str]:
    """Return the first ``count`` queries, most frequent first, each as it is typed in five ways."""
    kinds, things, uses = (SHOP["queries"][name] for name in ("kinds", "things", "uses"))
    typed = []
    for number in range(count):
        rest, kind = divmod(number, len(kinds))
        use, thing = rest // len(things), (rest + kind * 7) % len(things)
        text = f"{kinds[kind]} {things[thing]}{uses[use] if use < len(uses) else f' {use}'}"
        typed += [text, text.capitalize(), text.upper(), f" {text}  ", text.replace(" ", "  ", 1)]
    return typed


def write_tables(tables: Iterator[Any], path: Path) -> None:
    """Write tables of the same columns to a ``.csv.gz``, or a pattern of Parquet files; same rows, same bytes."""
    csv, parquet = (require(f"pyarrow.{name}", "commerce", _WORK) for name in ("csv", "parquet"))
    first = next(tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        # neither a name nor a time in the header
        with (
            path.open("wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=4, mtime=0) as packed,
            csv.CSVWriter(packed, first.schema) as writer,
        ):
            for table in chain([first], tables):
                writer.write_table(table)
        return
    for number, group in groupby(enumerate(chain([first], tables)), lambda one: one[0] // _TABLES):
        name = path.with_name(path.name.replace("*", f"{number:04d}"))
        with parquet.ParquetWriter(name, first.schema, compression="zstd", store_schema=False) as out:
            for _, table in group:
                out.write_table(table)
