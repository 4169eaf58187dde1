"""Bleeker et al. (2024): the bars of figure 4.5, and which row of each block of a table claims are judged on."""

from __future__ import annotations

from diptych.studies.claims import chosen_of
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.figures import grouped_bars
from diptych.studies.study import Study

_MODELS = {"vse": "From scratch", "clip": "Fine-tuned"}
_BARS = {"rsum": "evaluated without", "with rsum": "evaluated with shortcuts"}
_LEVELS = {"zero-shot rsum": "before fine-tuning", "chance rsum": "chance"}
_MOST = 600.0
_SHORTER = {"no shortcuts": "none", " on the image": "", "on ": "", " alone": ""}
_BY = "validation rsum"


def bars(study: Study, evidence: Evidence) -> Further:
    """Return figure 4.5, a chart for each model."""
    charts = []
    for model, title in _MODELS.items():
        rows = {row.name: _short(row.label) for row in study.rows if row.name.startswith(f"{model}-")}
        levels = {f"at most: {_MOST:g}": _MOST}
        for column, name in _LEVELS.items():
            for figure in list(evidence.only(list(rows), column).values())[:1]:
                levels[f"{name}: {figure.mean:.1f}"] = figure.mean
        charts.append(grouped_bars(title, evidence, rows, _BARS, levels))
    note = (
        "Recall sum on the test split by what was trained with, evaluated without and with shortcuts; lines on bars "
        "are standard deviations over seeds. Dotted: 600, all that can be had."
    )
    return Further(charts=[one for one in charts if one is not None], title="Figure 4.5", note=note)


def _short(label: str) -> str:
    text = label.partition(", ")[2]
    for long, short in _SHORTER.items():
        text = text.replace(long, short)
    return text


def chosen(study: Study, evidence: Evidence) -> Further:
    """Return which of a block's bounds or budgets claims are judged on, and by what."""
    remarks = []
    for block in [f"{model}-{setup}-" for model in _MODELS for setup in ("none", "unique")]:
        rows = [row.name for row in study.rows if row.name.startswith(block) and not row.extra]
        if judged := evidence.only(rows, _BY):
            values = ", ".join(f"{row} {figure.mean:.1f}" for row, figure in judged.items())
            best = chosen_of(evidence, rows, _BY)
            remarks.append(f"Chosen by {_BY} without shortcuts: {best}; of {values}.")
    return Further(remarks=remarks)
