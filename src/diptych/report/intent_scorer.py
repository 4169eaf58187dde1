"""A scorer as a page: how well it does on sessions it has not seen, what it says of an example, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import DiptychError
from diptych.core.reading import read_json
from diptych.core.table import Cell, Table
from diptych.report.drawing import BLUE, INK, ORANGE, PAPER, draw
from diptych.report.intent_content import (
    Block,
    Legend,
    Page,
    Panels,
    Section,
    Text,
    interval,
    label,
    number,
    percent,
    signed,
    write_page,
)
from diptych.report.intent_grid import Grid, pages_text, step_text
from diptych.report.intent_step_figures import RELIABILITY_LEGEND, measure_figures, reliability_figure
from diptych.report.page import Headline, shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring import Scorer
    from diptych.commerce.purchase_intent.scoring.cell import Reason, Score


PATH_LEGEND = Legend(
    (
        ("blue", "●", "probability of this session"),
        ("ink", "┄", "base rate of such sessions"),
        ("orange", "╌", "threshold, from which on it is taken for a purchase"),
    )
)


def path_figure(scores: Sequence[Score]) -> str:
    """Probability, base rate and threshold after every page, as ``<svg>``."""
    steps = [one.step for one in scores]
    with draw("path", size=(4.8, 3.1)) as drawing:
        axes = drawing.axes
        axes.plot(steps, [100 * one.base_rate for one in scores], color=INK, linewidth=1.1, linestyle=":")
        axes.plot(steps, [100 * one.threshold for one in scores], color=ORANGE, linewidth=1.3, linestyle="--")
        axes.plot(steps, [100 * one.p for one in scores], color=BLUE, linewidth=1.9, marker="o", markersize=5)
        for one in scores:
            axes.annotate(percent(one.p), (one.step, 100 * one.p), xytext=(0, 7), textcoords="offset points",
                          ha="center", fontsize=9, color=BLUE,
                          bbox={"boxstyle": "round,pad=0.1", "facecolor": PAPER, "edgecolor": "none"})  # fmt: skip
        axes.set_ylim(0, 1.18 * max(100 * max(one.p, one.base_rate, one.threshold) for one in scores) or 1.0)
        axes.set_xlim(min(steps) - 0.4, max(steps) + 0.4)
        axes.set_xticks(steps)
        axes.set(title="Page by page", xlabel="pages that are open", ylabel="probability of a purchase (%)")
        drawing.summary = "Probability of a purchase in per cent: " + "; ".join(
            f"after {one.step} pages {percent(one.p)}, base rate {percent(one.base_rate)}, "
            f"threshold {percent(one.threshold)}"
            for one in scores
        )
    return drawing.svg


def reasons_figure(reasons: Sequence[Reason]) -> str:
    """What features do to the odds, as bars to either side on a scale of doublings, as ``<svg>``."""
    doublings = [one.effect / math.log(2) for one in reasons]
    furthest = max(map(abs, doublings)) or 1.0
    with draw("reasons", size=(4.8, 1.0 + 0.4 * len(reasons))) as drawing:
        axes = drawing.axes
        for place, (one, value) in enumerate(zip(reasons, doublings, strict=True)):
            axes.barh(place, value, 0.62, color=BLUE if value >= 0 else ORANGE, alpha=0.85)
            axes.annotate(f"× {odds_factor(one.effect)}", (value, place), xytext=(4 if value >= 0 else -4, 0),
                          textcoords="offset points", va="center", ha="left" if value >= 0 else "right",
                          fontsize=9)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.9)
        axes.set_yticks(range(len(reasons)), [label(one.label, 32) for one in reasons])
        axes.set_ylim(len(reasons) - 0.4, -0.6)
        room = 0.45 * furthest  # for the numbers behind the bars
        axes.set_xlim(min(0.0, *doublings) - room, max(0.0, *doublings) + room)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.set_title("Reasons")
        axes.set_xlabel("doublings of the odds of a purchase", fontsize=9)
        drawing.summary = "What features do to the log-odds: " + "; ".join(
            f"{label(one.label, 32)} {signed(one.effect)}" for one in reasons
        )
    return drawing.svg


def odds_factor(effect: float) -> str:
    """What the odds are multiplied by."""
    return f"{math.exp(min(effect, 50.0)):.2g}"


Row = Mapping[str, Any]

_CARD, _EXAMPLE = "model_card.md", "example.json"
_REASONS = 8


def scorer_sections(scorer: Scorer, grid: Grid) -> list[Section]:
    """The sections that there is something for."""
    found = (
        _verdict(grid, scorer.about),
        _steps(grid),
        _probabilities(grid),
        _example(scorer),
        _card(scorer.folder),
    )
    return [section for section in found if section is not None]


def measured_cells(about: Row) -> list[dict[str, Any]]:
    """Cells as an evaluation has them, of what was measured on the last part."""
    model = about["options"]["model"]
    return [
        {
            "setting": cell["setting"],
            "set": about["options"]["feature_set"] if about["kind"] != "whole" else "all",
            "step": cell["step"],
            "model": model,
            "label": model,
            "threshold": cell["threshold"],
            **cell["holdout"],
            "reliability_calibrated": cell["holdout"]["reliability"],
            "reliability": None,
        }
        for cell in about["cells"]
        if cell["holdout"] is not None
    ]


def scorer_headlines(grid: Grid) -> list[Headline]:
    """Average precision at the last step of every setting, beside the share of purchases."""
    found = []
    for place in grid.fullest:
        last = grid.line(place, grid.chosen)[-1]
        found.append(
            Headline(
                f"average precision, {place.setting}",
                number(last["average_precision"], 2),
                f"{pages_text(last['step'])}; purchases {percent(last['base_rate'])} %",
            )
        )
    return found


def _verdict(grid: Grid, about: Row) -> Section:
    said = []
    for place in grid.fullest:
        last = grid.line(place, grid.chosen)[-1]
        better = last["brier"] < last["brier_base_rate"]
        said.append(
            f"{place.setting[:1].upper()}{place.setting[1:]}, {pages_text(last['step'])}: probabilities have a "
            f"Brier score of {number(last['brier'], 4)}, {'better' if better else 'no better'} than "
            f"{number(last['brier_base_rate'], 4)} for saying the share of purchases to everybody; "
            f"{percent(last['mean_p'])} % are said on average, {percent(last['base_rate'])} % bought."
        )
    least = (about["session_options"] or {}).get("pages", 0) + 2
    among = (
        "It was trained on whole sessions and says nothing of one that still runs."
        if about["kind"] == "whole"
        else f"Its probabilities hold among sessions that go on to at least {least} pages and buy nothing before two "
        "more pages are open: those are what it was trained on."
    )
    return Section(
        "verdict",
        "Verdict",
        said or ["Nothing was measured: the last part lacks one of the classes."],
        among,
        [_table(grid)] if grid.cells else [],
    )


def _table(grid: Grid) -> Table:
    rows = []
    for cell in grid.cells:
        rows.append(
            (
                Cell(cell["setting"], pages_text(cell["step"])),
                Cell(number(cell["sessions"]), f"{number(cell['purchases'])} bought"),
                Cell(percent(cell["base_rate"], 2)),
                *(
                    Cell(number(cell[name], 3), interval(cell[f"{name}_low"], cell[f"{name}_high"], 3, 1.0))
                    for name in ("average_precision", "roc_auc", "f1")
                ),
                Cell(number(cell["always_buy_f1"], 3)),
                Cell(number(cell["brier"], 4), f"of all alike {number(cell['brier_base_rate'], 4)}"),
                Cell(number(cell["threshold"], 3)),
            )
        )
    heads = (
        "Model",
        "Sessions",
        "Purchases, %",
        "AP",
        "ROC AUC",
        "F1",
        "Always-buy F1",
        "Brier",
        "Threshold",
    )
    return Table("Measured on the last part", heads, rows, folded=len(rows) > 4)


def _steps(grid: Grid) -> Section | None:
    figures = [
        figure
        for measure, title, reference in (
            ("average_precision", "average precision", "base_rate"),
            ("f1", "F1 at the threshold", "always_buy_f1"),
        )
        for figure in measure_figures(grid, measure, title, lambda cell, name=reference: cell[name])  # type: ignore[misc]
    ]
    if not figures or len(grid.steps) < 2:
        return None
    return Section(
        "steps",
        "By step",
        protocol="On the last part, of which the models have seen nothing. Dotted: the share of purchases, and the F1 "
        "of predicting a purchase always. Bands are intervals of resampled persons.",
        blocks=[Panels(figures, 24.0)],
    )


def _probabilities(grid: Grid) -> Section | None:
    figures = []
    for number_of, place in enumerate(grid.fullest):
        line = grid.line(place, grid.chosen)
        for cell in {line[0]["step"]: line[0], line[-1]["step"]: line[-1]}.values():
            title = f"{place.setting}, {pages_text(cell['step'])}"
            figures.append(
                reliability_figure(f"reliability-{number_of}-{step_text(cell['step'])}", title, cell)
            )
    if not any(figures):
        return None
    return Section(
        "probabilities",
        "Probabilities",
        protocol="Sessions of the last part in bins of equally many, by probability: the mean that is said and the "
        "share that bought.",
        blocks=[
            Legend([RELIABILITY_LEGEND.entries[0], RELIABILITY_LEGEND.entries[2]]),
            Panels([figure for figure in figures if figure], 24.0),
        ],
    )


def _example(scorer: Scorer) -> Section | None:
    """A made-up session, page by page."""
    file = scorer.folder / _EXAMPLE
    if scorer.is_whole or not file.is_file():
        return None
    title, name = "An example", "example"
    try:
        scores = _scored(scorer, read_json(file))
    except DiptychError as error:
        return Section(name, title, notes=[f"{_EXAMPLE} cannot be scored: {error.message}."])
    if not scores:
        return Section(name, title, notes=[f"No page is opened in {_EXAMPLE}."])
    last = scores[-1]
    blocks: list[Block] = [
        PATH_LEGEND,
        Panels(
            [path_figure(scores), *([reasons_figure(last.reasons)] if last.reasons else [])],
            24.0,
        ),
    ]
    if last.reasons:
        rows = [
            (
                Cell(one.label),
                Cell(shorten(one.value, 60)),
                Cell(shorten(one.typical, 60)),
                Cell(f"× {odds_factor(one.effect)}"),
            )
            for one in last.reasons
        ]
        blocks.append(Table("Reasons", ("Feature", "Here", "Typically", "Odds"), rows))
    return Section(
        name,
        title,
        [shorten(f"{last.line()}.", 300)],
        f"The session of {_EXAMPLE}, which nobody had. A reason is what the log-odds are more or less than "
        "with the feature's values of training sessions in its place: an account of the model, not of causes.",
        blocks,
        [shorten(f"{note[:1].upper()}{note[1:]}.", 300) for note in last.notes],
    )


def _scored(scorer: Scorer, session: Any) -> list[Score]:
    """The last score of every step that the session reaches."""
    events = list(session.get("events", ()))
    known = {name: value for name, value in session.items() if name != "events"}
    stream = scorer.stream(reasons=_REASONS, **known)
    scores = (stream.add(event) for event in events)
    return list({score.step: score for score in scores if score is not None}.values())


def _card(folder: Path) -> Section | None:
    try:
        text = (folder / _CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return Section(
        "card", "Model card", blocks=[Text("The card as it lies in the folder, with limits and data", text)]
    )


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
