"""From events to three tables, of which all statistics and features are made.

``sessions``: one row per session; ``pages``: the first pages of every session that is long enough to predict on;
``queries``: one row per submitted query, normalised. Their rows have no order. A session ends after the gap without an
event: strictly more, so that exactly 30 minutes are one session still (thesis section 6.2). Its identifier is that of
its first event. ``LOG/sessions/client-30min-10p-0a1b2c/`` has a folder of each table, and ``sessions.json``.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

from diptych.commerce.logs.database import literals
from diptych.commerce.logs.log import LENGTH_ACTIONS, SECOND, UNKNOWN, Log, read_columns
from diptych.commerce.purchase_intent.engine import Engine, open_engine, rows_of
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.reading import read_toml

BUFFER = 2  # pages that have to follow the last step, and a purchase the present one

TABLES = read_columns(Path(__file__).with_name("sessions.toml"))
PASSES = read_toml(Path(__file__).with_name("passes.toml"))


@dataclass(frozen=True)
class SessionTables(Artifact, kind="sessions", recreate="diptych intent describe LOG"):
    """Tables of sessions."""

    about: dict[str, Any]  # of which log, by which options, and how many
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def fingerprint(self) -> str:
        return str(self.about["fingerprint"])

    def files(self, name: str) -> list[Path]:
        """Return the files of a table, one per pass, in order; at least one."""
        found = sorted((self.folder / name).glob("part-*.parquet"))
        if not found:
            raise DataError(f"{self.folder / name} holds no files", f"remove {self.folder} and recreate it")
        return found


# What Python's str.split takes for a blank, character by character: escapes are read differently by engines.
_BLANKS = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_ODD = "[^ -~]|^ | $|  "


def normalised(text: Any) -> Any:
    """Return texts, a column of Ibis, in lower case, without blanks at the ends, others made one space; null stays.

    Engines' own ways differ: in final sigma, in the dotted capital I, in what ``\\s`` is; Ibis's ``strip`` cuts the
    letters f and v on Spark. Here İ becomes i, and ς becomes σ. Engines were compared on every character of Unicode 14;
    capitals of alphabets that came later may be left as they are.
    """
    import ibis

    # Most queries are words of ASCII with one space between them, and need no more than lower case.
    letters = text.replace("İ", "i").lower().replace("ς", "σ")
    spaced = letters.re_replace(_BLANKS, " ").re_replace("^ | $", "")
    return ibis.ifelse(text.re_search(_ODD), spaced, text.lower())


def _passes(files: Sequence[Path], most: int | None) -> Iterator[tuple[list[Path], int]]:
    """Yield files of about ``most`` events, and how many there are; all at once without ``most``."""
    pq = require("pyarrow.parquet", "commerce", "reading a log")
    sizes = [pq.read_metadata(file).num_rows for file in files]
    placed = zip(files, sizes, accumulate(sizes), strict=True)
    for _, group in groupby(placed, lambda one: most and (one[2] - 1) // most):
        together, events, _ = zip(*group, strict=True)
        yield list(together), sum(events)


def sessionise(
    log: Log,
    options: SessionOptions | None = None,
    *,
    engine: Engine | None = None,
    folder: Path | None = None,
) -> SessionTables:
    """Return the sessions of a log: made when they are not there, or are those of another log or other options."""
    options = options or SessionOptions()
    folder = folder or log.folder / "sessions" / options.key
    known_as = fingerprint("sessions", SessionTables.FORMAT, log.fingerprint, options.model_dump())
    with taking_turns(folder):
        try:
            there = SessionTables.open(folder)
            if there.fingerprint == known_as:
                return there
        except StorageError:
            pass  # not there, or corrupt
        with (
            atomic_folder(folder, SessionTables.marker()) as inside,
            open_engine() if engine is None else nullcontext(engine) as runs,
        ):
            about: dict[str, Any] = {"log": log.name, "zone": log.zone, "log_fingerprint": log.fingerprint}
            about |= {"options": options.model_dump(), "fingerprint": known_as}
            about["counts"] = _write_tables(log, options, runs, inside)
            SessionTables(about).save(inside / SessionTables.marker())
    return SessionTables.open(folder)


def _write_tables(log: Log, options: SessionOptions, engine: Engine, folder: Path) -> dict[str, int]:
    """Write the tables, a part per pass, and return how many there are of what."""
    pq = require("pyarrow.parquet", "commerce", "reading a log")
    if not log.buckets:
        raise DataError(f"{log.folder} holds no events", "import the log again")
    if options.by == "given":
        (found,) = rows_of(engine, "SELECT count(given_session) AS n FROM {}", log.buckets)
        if not found["n"]:
            raise UsageError(f"{log.name} brings no sessions of its own", "take them by client")
    for name in TABLES:
        (folder / name).mkdir()
    # Everything of one client is in one file, so that a pass needs the memory of a few files at most. A visitor's
    # clients are in any of them: sessions by visitor take one pass over everything, which the engine spills.
    most = None if options.by == "visitor" else engine.rows_at_once
    with task("sessions", log.n_events, "events") as bar:
        for number, (files, n) in enumerate(_passes(log.buckets, most)):
            _run_pass(engine, files, options, folder, f"part-{number:04d}.parquet")
            bar.advance(n)
    (counts,) = rows_of(engine, PASSES["queries"]["counts"], sorted((folder / "sessions").iterdir()))
    for name in ("pages", "queries"):
        counts[name] = sum(pq.read_metadata(file).num_rows for file in (folder / name).iterdir())
    return counts


def _run_pass(
    engine: Engine, files: Sequence[Path], options: SessionOptions, folder: Path, part: str
) -> None:
    found, queries = PASSES["keys"][options.by], PASSES["queries"]
    # An import writes in the order of clients, so that windows need none; rows by another key are put in order first.
    in_order, names = engine.keeps_order, ", ".join(found)
    turn = "" if in_order else f"PARTITION BY {names} ORDER BY t_us, event_id"
    words = {
        "log": engine.read(files, "events").get_name(),
        "actions": literals(LENGTH_ACTIONS),
        "found": ", ".join(f"{sql} AS {name}" for name, sql in found.items()),
        "parts": "" if in_order else f"{names},",
        "keys": "number" if in_order else f"{names}, number",
        "turn": turn,
        "so_far": "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "same": " AND ".join(f"{name} = lag({name}) OVER ({turn})" for name in found),
        "is_given": "given <> ''" if options.by == "given" else "false",
        "gap": round(options.gap_minutes * 60 * SECOND),
        "unknown": UNKNOWN,
        "least": options.pages + BUFFER,
        "most": options.pages,
    }
    words["events"] = queries["events"].format(**words)
    with ExitStack() as stack:

        def hold(query: str) -> str:
            return str(stack.enter_context(engine.held(engine.sql(query))).get_name())

        if in_order and options.by != "client":
            words["events"] = f"FROM {hold(words['events'] + f' ORDER BY {names}, t_us, event_id')}"
        for name in ("assigned", "gathered"):
            words[name] = hold(queries[name].format(**words))
        for name in TABLES:
            table = engine.sql(queries[name].format(**words))
            if name == "queries":
                table = table.mutate(query=normalised(table["query"]).fill_null(""))
            kinds = {"bool": "boolean", "double": "float64"}
            typed = {one: table[one].cast(kinds.get(kind, kind)) for one, kind in TABLES[name].items()}
            engine.write(table.select(**typed), folder / name / part)
            if name == "sessions":
                words["written"] = engine.read([folder / name / part], name).get_name()
