"""Two tables beside the printed one: coarse against finer captions with effect sizes, and what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.studies.evidence import Evidence
from diptych.studies.granularity_checks import ROW, pairs_of
from diptych.studies.published import published_table
from diptych.studies.study import FurtherTable

if TYPE_CHECKING:
    from diptych.analysis.granularity import Effect, FeatureDifference


def granularity_tables(evidence: Evidence) -> list[FurtherTable]:
    """A comparison for each pair of coarse and finer collections that was measured, and the definitions."""
    tables = []
    for coarse, fine in pairs_of(evidence.centric):
        folders = [evidence.kept.get(f"{name} {ROW}", ()) for name in (coarse, fine)]
        if all(folders):
            tables.append(_compared(coarse, fine, [found[0] for found in folders]))
    return [*tables, _definitions()]


def _compared(coarse: str, fine: str, folders: list[Path]) -> FurtherTable:
    from diptych.analysis.granularity import Granularity, compare_granularity

    compared = compare_granularity(*(Granularity.open(folder) for folder in folders))
    printed = _printed(coarse, fine)
    rows = tuple(
        (
            one.name,
            _effect(one.difference, one.decimals),
            _effect(one.relative, 1, 100.0),
            printed.get(one.name, ""),
            *(_value(size) for size in (one.d, one.delta)),
            *(_value(size) for size in (one.paired_d, one.paired_delta) if compared.paired),
            _p(one),
        )
        for one in compared.differences
    )
    paired = ("d_z", "δ_z") if compared.paired else ()
    return FurtherTable(
        f"{fine} less {coarse}",
        f"By the right definitions; d: Cohen's, δ: Cliff's, of captions{'; d_z, δ_z: of images' if paired else ''}. "
        f"{'; '.join(compared.notes)}.",
        ("feature", "difference", "%", "printed %", "d", "δ", *paired, "p, corrected"),
        rows,
    )


def _printed(coarse: str, fine: str) -> dict[str, str]:
    """By feature, by how many per cent the printed number is above the other's; nothing of other collections."""
    table = published_table("brittleness", "table-5.1")
    rows = [table.of(ROW, name.lower()) for name in (coarse, fine)]
    if rows[0] is None or rows[1] is None:
        return {}
    return {
        name: f"{100 * (cell.value / rows[0].cells[name].value - 1):+.1f}"
        for name, cell in rows[1].cells.items()
    }


def _effect(effect: Effect | None, decimals: int, scale: float = 1.0) -> str:
    if effect is None or effect.value is None:
        return "–"
    # Rounded first: what is as good as nothing is +0.00.
    value, *ends = (
        None if one is None else f"{round(scale * one, decimals) + 0.0:+.{decimals}f}"
        for one in (effect.value, effect.low, effect.high)
    )
    return f"{value} [{ends[0]}, {ends[1]}]" if ends[0] is not None else str(value)


def _value(effect: Effect | None) -> str:
    """An effect size without its interval: those of diptych granularity have theirs."""
    return "–" if effect is None or effect.value is None else f"{round(effect.value, 2) + 0.0:+.2f}"


def _p(one: FeatureDifference) -> str:
    return "–" if one.corrected is None else f"{one.corrected:.4f}"


def _definitions() -> FurtherTable:
    from diptych.analysis.granularity import choose_features

    return FurtherTable(
        "What is counted",
        "Per caption. The printed adjectives and complement phrases are of no count of tags that was tried: they "
        "stand beside the right ones.",
        ("feature", "counted", "printed"),
        tuple(
            (
                one.name,
                one.description,
                one.published_description or "not known",
            )
            for one in choose_features()
        ),
    )
