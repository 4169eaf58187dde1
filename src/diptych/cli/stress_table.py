"""The tables of ``diptych stress``, and the sentences below them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from diptych.cli.console import print_table, say

if TYPE_CHECKING:
    from diptych.training.stress import StressResult, StressRow

__all__ = ["show_stress"]


def show_stress(found: StressResult) -> None:
    """Print what a run found: tables by group, sentences, protocol."""
    from diptych.analysis.perturbations import GROUPS
    from diptych.training.stress import sayings

    gains = [name for name in found.measures if name.startswith("DCG")][:1]
    first = "rsum" if "rsum" in found.measures else found.measures[0]
    columns = (
        "perturbation",
        "changed",
        first,
        "perturbed",
        "difference (95 %)",
        "%",
        "of changed",
        *gains,
        "p",
        "",
    )
    for group, meaning in GROUPS.items():
        rows = [row for row in found.rows if row.group == group]
        if rows:
            print_table(f"{group}: {meaning}", columns, _rows(rows, first, gains), numbers=columns[1:-1])
    say("rsum: R@1 + R@5 + R@10 of the direction, 300 at most; p corrected over everything tested")
    say(
        "of changed: the difference over the changed queries alone; ±: over seeds, none where all do the same"
    )
    for name, reason in found.left_out.items():
        say(f"left out {name}: {reason}")
    for line in sayings(found):
        say(line)
    for line in (*found.notes, found.protocol_line(), found.method):
        say(line)


def _rows(rows: list[StressRow], first: str, gains: list[str]) -> Iterator[tuple[str, ...]]:
    from diptych.training.stress.sayings import shown, shown_difference

    for row in rows:
        drop = row.drop(first)
        ends = ""
        if drop.low is not None and drop.high is not None:
            ends = f" ({shown_difference(first, drop.low)} to {shown_difference(first, drop.high)})"
        perturbed = shown(first, drop.perturbed)
        if drop.spread is not None and row.draws > 1:
            perturbed += f" ± {shown(first, drop.spread)}"
        yield (
            row.name,
            f"{100 * row.changed_share:.0f} %",
            shown(first, drop.clean),
            perturbed,
            f"{shown_difference(first, drop.difference)}{ends}",
            _relative(drop.relative),
            shown_difference(first, row.changed_drops[first].difference) if row.changed_drops else "–",
            *(shown_difference(gain, row.drop(gain).difference) for gain in gains),
            "<0.001" if drop.corrected < 0.001 else f"{drop.corrected:.3f}",
            drop.verdict,
        )


def _relative(share: float | None) -> str:
    if share is None:
        return "–"
    return "0" if share == 0 else f"{100 * share:+.1f}"
