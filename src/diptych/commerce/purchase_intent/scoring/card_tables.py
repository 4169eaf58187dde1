"""The tables of a model card: what was measured, and whether probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.commerce.purchase_intent.scoring.cell import Cell

__all__ = ["measured_section", "plain", "reliability_section", "table"]

_MEASURED = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC AUC"),
    ("f1", "F1"),
)


def measured_section(about: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    """Measures of every model on the last part, and what has to be said about them."""
    options = about["options"]
    head = ("setting", "step", "sessions", "bought", "base rate", *(label for _, label in _MEASURED),
            "F1 of always buy", "Brier", "Brier of the base rate", "threshold")  # fmt: skip
    rows = []
    for cell in cells:
        found = cell.about["holdout"]
        place = (cell.setting, "whole" if cell.step < 0 else str(cell.step))
        if found is None:
            sessions, bought = (cell.about[name]["holdout"] for name in ("sessions", "purchases"))
            rows.append((*place, f"{sessions:,}", f"{bought:,}", *("–" for _ in head[4:])))
            continue
        rows.append(
            (
                *place,
                f"{found['sessions']:,}",
                f"{found['purchases']:,}",
                f"{found['base_rate']:.4f}",
                *(_with_interval(found, name) for name, _ in _MEASURED),
                f"{found['always_buy_f1']:.4f}",
                f"{found['brier']:.4f}",
                f"{found['brier_base_rate']:.4f}",
                f"{cell.threshold:.4f}",
            )
        )
    text = (
        "On the last part, of which the model has seen nothing"
        + (
            f"; {100 * options['confidence']:g} % intervals of {options['samples']:,} resamples of persons"
            if options["samples"]
            else ""
        )
        + ".\n\n"
        + table(head, rows)
    )
    said = [
        f"- {cell.setting}, step {cell.step}: {plain(note)}" for cell in cells for note in cell.about["notes"]
    ]
    said += [
        f"- not trained: {one['setting']}, step {one['step']}: {one['reason']}"
        for one in about["not_trained"]
    ]
    return text + ("\n\n" + "\n".join(said) if said else "")


def reliability_section(cells: Sequence[Cell]) -> str:
    """Probabilities and shares of the last step of every setting."""
    rows = [
        (
            cell.setting,
            "whole" if cell.step < 0 else str(cell.step),
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['n']:,}",
            f"{row['mean_score']:.4f}",
            f"{row['share']:.4f}",
        )
        for cell in _some(cells)
        for row in (cell.about["holdout"] or {}).get("reliability", ())
    ]
    if not rows:
        return "Not measured: the last part lacks one of the classes."
    return (
        "Of sessions with these probabilities so many bought, on the last part; all steps are in `scorer.json`.\n\n"
        + table(("setting", "step", "p", "sessions", "mean p", "bought"), rows)
    )


def _some(cells: Sequence[Cell]) -> list[Cell]:
    """The last step of every setting."""
    return list({cell.setting: cell for cell in cells}.values())


def _with_interval(found: Mapping[str, Any], name: str) -> str:
    low, high = found[f"{name}_low"], found[f"{name}_high"]
    return f"{found[name]:.4f}" + ("" if low is None else f" [{low:.4f}, {high:.4f}]")


def plain(text: str) -> str:
    """A text from elsewhere, harmless in Markdown and in a table."""
    line = " ".join(str(text).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in line)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
