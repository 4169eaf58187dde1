"""A scorer as a page: how well it does on sessions it has not seen, what it says of an example, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.report.intent_discretion import number
from diptych.report.intent_grid import Grid, step_text
from diptych.report.intent_page import Page, write_page
from diptych.report.intent_scorer_sections import measured_cells, scorer_headlines, scorer_sections
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring import Scorer

Row = Mapping[str, Any]


def write_scorer_page(path: Path | str, folder: Path | str) -> Path:
    """Write the page of a scorer's folder as one HTML file, whole or not at all."""
    from diptych.commerce.purchase_intent.scoring import Scorer

    return write_page(path, scorer_page(Scorer.open(folder)))


def scorer_page(scorer: Scorer) -> Page:
    """The page of a scorer."""
    about = scorer.about
    grid = Grid(measured_cells(about))
    options, sizes = about["options"], about["slices"]["sizes"]
    facts = {
        "features": f"{about['line']}; {options['feature_set']} set, fingerprint {about['fingerprint']}",
        "days": f"{about['days']}{'; hours and week days of ' + about['zone'] if about['zone'] else ''}",
        "model": f"{options['model']}, classes weighed by {about['weighting'].replace('_', ' ')}, seed "
        f"{options['seed']}",
        "parts": f"{about['slices']['note']}: fitted on {number(sizes['fit'])} sessions, calibrated "
        f"({options['calibrate']}) on {number(sizes['calibration'])}, measured on {number(sizes['holdout'])}",
        "threshold": "the probability with the best F1 where it was calibrated",
        "intervals": f"{100 * options['confidence']:g} %, {options['samples']:,} resamples of persons"
        if options["samples"]
        else "none",
        "leak audit": _audited(about["audit"]),
    }
    return Page(
        f"Scorer: {shorten(str(about['name']), 80)}",
        shorten(scorer.describe(), 200),
        scorer_headlines(grid),
        scorer_sections(scorer, grid),
        facts,
        _remarks(about),
        [f"diptych intent score SCORER {'FEATURES --out SCORES' if scorer.is_whole else 'SESSION.json'}"],
        "Use",
    )


def _audited(audit: Row | None) -> str:
    if audit is None:
        return "not run with this scorer"
    alarms = sum(bool(finding["alarm"]) for finding in audit["findings"])
    return f"{len(audit['findings'])} findings, {alarms} alarms ({', '.join(audit['checks'])})"


def _remarks(about: Row) -> list[str]:
    said = [
        f"Not trained: {one['setting']}, step {step_text(one['step'])}: {shorten(str(one['reason']), 200)}."
        for one in about["not_trained"]
    ]
    for one in (about["audit"] or {}).get("findings", ()):
        if one["alarm"]:
            said.append(
                f"Alarm of the leak audit, {one['check']} {one['where']}: {shorten(str(one['text']), 300)}."
            )
    if about["history"]:
        said.append(f"The folder holds the history of {number(about['history'])} visitors: personal data.")
    return said
