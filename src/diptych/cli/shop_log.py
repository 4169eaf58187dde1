"""``diptych scenes --shop-log``: generate the log of a shop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.cli.console import next_step, print_table, say
from diptych.cli.progress import progress

__all__ = ["LOG_OPTIONS", "shop_log_scenes"]

LOG_OPTIONS = ("visitors", "days", "dirt", "file_format")
"""Options of ``diptych scenes`` that say something of a log."""


def shop_log_scenes(
    out: Path | None, *, visitors: int, days: int, seed: int, dirt: float, file_format: str
) -> None:
    """Make a shop log, and say what is in it and what comes next."""
    from diptych.core.files import read_json
    from diptych.data.scenes.shop_log import TRUTH, make_shop_log

    with progress():
        folder = make_shop_log(out, visitors=visitors, days=days, seed=seed, dirt=dirt, format=file_format)
    truth = read_json(folder / TRUTH)
    totals = {row["what"]: row["total"] for row in truth["statistics"]["overview"]}
    say(
        f"a log of {totals['events']:,} events in {totals['sessions']:,} sessions, "
        f"{_part(totals, 'purchase sessions')} with a purchase, {_part(totals, 'anonymous sessions')} anonymous"
    )
    spoilt = [(rule, f"{rows:,}") for rule, rows in truth["dirt"].items() if rows]
    if spoilt:
        print_table("rows that are none", ["rule", "rows"], spoilt, numbers=["rows"])
    say(f"in {folder}; what is planted and what is true of it: {folder / TRUTH}")
    next_step(f"diptych intent ingest {folder} --out log")


def _part(totals: dict[str, Any], what: str) -> str:
    return f"{totals[what] / totals['sessions']:.1%}"
