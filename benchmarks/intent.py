"""Ten million events to sessions, statistics and step features: CPU and peak memory, compared with polars and pandas.

``python -m benchmarks.intent --events 40000000`` for another size, ``--keep FOLDER`` to keep the log. Every way runs
in a process of its own over the same canonical files; CPU-seconds are those of all its threads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_mb
from benchmarks.table import Line, render

__all__ = ["measure"]

_EVENTS = 10_000_000
_TIMES_POLARS = 1.3
_PEAK, _FEATURES_PEAK, _LIMITED_PEAK = 650.0, 2_000.0, 1_000.0
_LIMIT = "450MB"
_SAMPLE = 5_000


def measure(
    events: int = _EVENTS, keep: Path | None = None, ways: tuple[str, ...] | None = None
) -> list[Line]:
    """Measure ours, ours with little memory, polars, pandas and the import; the same totals from all."""
    with tempfile.TemporaryDirectory() as folder:
        log = _log(events, keep or Path(folder))
        ways = ways or (("limited", "polars", "pandas", "ingest") if events <= 2 * _EVENTS else ())
        found = {way: _measured(way, log) for way in ("diptych", *ways)}
    ours = found["diptych"]
    for way in {"limited", "polars", "pandas"} & set(ways):
        if found[way]["totals"] != ours["totals"]:
            raise AssertionError(f"{way} gives {found[way]['totals']}, ours are {ours['totals']}")
    return _lines(found, int(ours["events"]), int(ours["totals"]["sessions"]))


def _log(events: int, folder: Path) -> Path:
    """A log of about so many events, made and imported once."""
    from diptych.commerce.logs.ingest import ingest
    from diptych.commerce.scenes.shop_log import make_shop_log

    target = folder / f"log-{events}"
    if (target / "log.json").is_file():
        return target
    sample = make_shop_log(folder / "sample", visitors=_SAMPLE, format="parquet")
    per_visitor = json.loads((sample / "truth.json").read_text())["events"] / _SAMPLE
    raw = make_shop_log(
        folder / f"raw-{events}", visitors=round(events / per_visitor * 1.01), format="parquet"
    )
    ingest(raw, target, name="shop-log scenes", zone="Europe/Amsterdam")
    return target


def _measured(way: str, log: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.intent", "--way", way, "--log", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"  {way}: {result}", file=sys.stderr, flush=True)
    return result


def _run(way: str, log: Path) -> dict[str, Any]:
    """One way, in this process."""
    if way == "ingest":
        return _run_ingest(log)
    if way in ("polars", "pandas"):
        from benchmarks import intent_peers

        peer = {"polars": intent_peers.by_polars, "pandas": intent_peers.by_pandas}[way]
        files = sorted((log / "events").rglob("*.parquet"))
        totals, cpu, wall = _timed(lambda: peer(files))
        return {"totals": totals, "cpu": cpu, "wall": wall, "peak": peak_mb()}
    return _run_ours(log, _LIMIT if way == "limited" else None)


def _run_ours(folder: Path, limit: str | None) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from diptych.commerce.logs import Log
    from diptych.commerce.purchase_intent.engine import open_engine
    from diptych.commerce.purchase_intent.features.make import make_features
    from diptych.commerce.purchase_intent.sessions import sessionise
    from diptych.commerce.purchase_intent.statistics import describe

    log = Log.open(folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        with open_engine("duckdb", memory_limit=limit) as engine:
            tables, cpu, wall = _timed(lambda: sessionise(log, engine=engine, folder=Path(work) / "sessions"))
            description, described, described_wall = _timed(lambda: describe(tables, engine=engine))
            before = peak_mb()
            features, made, made_wall = _timed(
                lambda: make_features(tables, engine=engine, folder=Path(work) / "features")
            )
        totals = {row["what"]: row["total"] for row in description.unprotected["overview"]}
        lengths = description.unprotected["session-length"]
        found = {
            "sessions": totals["sessions"],
            "purchases": totals["purchase sessions"],
            "length": sum(row["length"] * row["sessions"] for row in lengths if row["device"] == "all"),
            "pages": sum(pq.read_metadata(file).num_rows for file in tables.files("pages")),
            "queries": totals["queries"],
            "distinct queries": totals["distinct queries"],
            "transitions": sum(row["transitions"] for row in description.unprotected["device-transitions"]),
            "visitors": totals["identified visitors"],
        }
        return {
            "totals": found,
            "events": log.n_events,
            "sessions_cpu": cpu,
            "statistics_cpu": described,
            "cpu": cpu + described,
            "wall": wall + described_wall,
            "features_cpu": made,
            "features_wall": made_wall,
            "step_rows": sum(
                len(features.population(setting, step))
                for setting in features.settings
                for step in features.steps
            ),
            "peak_statistics": before,
            "peak": peak_mb(),
        }


def _run_ingest(folder: Path) -> dict[str, Any]:
    """The import itself, of the same raw files."""
    from diptych.commerce.logs import Log
    from diptych.commerce.logs.ingest import ingest

    raw = next(folder.parent.glob(f"raw-{folder.name.removeprefix('log-')}"))
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        log, cpu, wall = _timed(lambda: ingest(raw, Path(work) / "log", zone="Europe/Amsterdam"))
        assert log.n_events == Log.open(folder).n_events
    return {"totals": {}, "cpu": cpu, "wall": wall, "peak": peak_mb()}


def _timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def _lines(found: dict[str, dict[str, Any]], events: int, sessions: int) -> list[Line]:
    ours = found["diptych"]
    rate = events / ours["cpu"]
    how = f"{events:,} generated events, {sessions:,} sessions; DuckDB, all its threads"
    lines = [
        Line(
            "sessions and all statistics of a shop log",
            f"{rate / 1e6:.2f} M events per CPU-second ({ours['sessions_cpu']:.1f} + {ours['statistics_cpu']:.1f} "
            f"CPU-s, {ours['wall']:.1f} s); "
            f"peak {ours['peak_statistics']:,.0f} MB",
            f"≤ {_PEAK:,.0f} MB",
            ours["peak_statistics"] <= _PEAK,
            how,
        ),
        Line(
            "features of eleven steps, after that",
            f"{ours['features_cpu']:.1f} CPU-s for {ours['step_rows']:,} step rows; peak {ours['peak']:,.0f} MB",
            f"≤ {_FEATURES_PEAK:,.0f} MB",
            ours["peak"] <= _FEATURES_PEAK,
            "sessions of at least 12 pages, history of identified visitors",
        ),
    ]
    if "limited" in found:
        lines.append(_limited(found["limited"], ours))
    for way in ("polars", "pandas"):
        if way in found:
            peer = found[way]
            lines.append(
                Line(
                    f"CPU of sessions and statistics ÷ {way}",
                    f"{ours['cpu'] / peer['cpu']:.2f}× ({way}: {peer['cpu']:.1f} CPU-s, {peer['wall']:.1f} s, "
                    f"peak {peer['peak']:,.0f} MB)",
                    f"≤ {_TIMES_POLARS}" if way == "polars" else "(stated)",
                    way != "polars" or ours["cpu"] / peer["cpu"] <= _TIMES_POLARS,
                    f"{way} in memory, using the files' order, same totals; it writes nothing",
                )
            )
    if "ingest" in found:
        one = found["ingest"]
        lines.append(
            Line(
                "import of the same events from Parquet",
                f"{events / one['cpu'] / 1e6:.2f} M events per CPU-second; peak {one['peak']:,.0f} MB",
                "(stated)",
                True,
                "rules, duplicates, buckets, order",
            )
        )
    return lines


def _limited(limited: dict[str, Any], ours: dict[str, Any]) -> Line:
    return Line(
        f"the same with DuckDB limited to {_LIMIT}",
        f"peak {limited['peak']:,.0f} MB, {limited['cpu'] / ours['cpu']:.2f}× the CPU-seconds",
        f"≤ {_LIMITED_PEAK:,.0f} MB",
        limited["peak"] <= _LIMITED_PEAK,
        "a bucket at a time, what does not fit is spilled; the same totals",
    )


def main() -> None:
    """Measure, or be one of the measured processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=_EVENTS)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--ways", nargs="*", help="limited, polars, pandas, ingest; of up to 20 M events all")
    parser.add_argument("--way")
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(_run(given.way, given.log)))
        return
    print(
        render(
            measure(given.events, given.keep, given.ways and tuple(given.ways)),
            f"{shutil.which('python')}: one run.",
        )
    )


if __name__ == "__main__":
    main()
