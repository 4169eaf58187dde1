"""All statistics of a log's sessions, on any engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.commerce.purchase_intent.statistics.choose import check_options, choose_statistics
from diptych.commerce.purchase_intent.statistics.classes import apart_from_all
from diptych.commerce.purchase_intent.statistics.declaration import DescribeOptions, Row, Tables
from diptych.commerce.purchase_intent.statistics.description import Description
from diptych.core.context import track


def describe(
    tables: SessionTables,
    *,
    engine: Engine | None = None,
    options: DescribeOptions | None = None,
    names: Iterable[str] | None = None,
) -> Description:
    """Count on the engine, and compute shares, intervals and rates from the counts."""
    options = options or DescribeOptions()
    check_options(options)
    chosen = choose_statistics(names)
    found: dict[str, list[Row]] = {}
    with open_engine() if engine is None else nullcontext(engine) as runs:
        sessions, queries = (
            apart_from_all(runs.read(tables.files(name))) for name in ("sessions", "queries")
        )
        read = Tables(sessions, queries)
        for statistic in track(chosen, "statistics", unit="statistics"):
            counted = runs.to_arrow(statistic.expression(read, options)).to_pylist()
            found[statistic.name] = statistic.finish(counted, options)
        about = {
            "log": tables.log_name,
            "zone": tables.zone,
            "log_fingerprint": tables.about["log_fingerprint"],
            "sessions_fingerprint": tables.fingerprint,
            "session_options": tables.about["options"],
            "options": asdict(options),
            "engine": runs.name,
            "counts": tables.about["counts"],
            "notes": _notes(tables.about["counts"], tables.about["options"]),
        }
    return Description(about, found)


def _notes(counts: Mapping[str, int], options: Mapping[str, Any]) -> list[str]:
    """What a reader has to know."""
    sessions, purchases, identified = counts["sessions"], counts["purchases"], counts["identified"]
    notes = []
    if not sessions:
        return ["the log has no events: there is nothing to describe"]
    if not purchases:
        notes.append("no session has a purchase: its class is empty, and all conversion rates are 0")
    elif purchases == sessions:
        notes.append("every session has a purchase: there is nothing to compare them with")
    if not identified:
        notes.append(
            "no visitor is known anywhere: nothing can be said of devices per visitor and of switches"
        )
    if counts["several_visitors"]:
        notes.append(
            f"{counts['several_visitors']:,} sessions have several visitors; each counts for the first of them"
        )
    if options["by"] == "visitor":
        notes.append("sessions are by visitor: what a client did before logging in is another session")
    return notes
