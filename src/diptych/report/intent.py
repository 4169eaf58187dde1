"""The pages of purchase intent: a description of a log, an evaluation of models, a scorer (thesis chapter 6)."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from diptych.commerce.logs.log import Log
from diptych.commerce.purchase_intent import shown as evaluated
from diptych.commerce.purchase_intent.drift import Drift
from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.options import EvaluateOptions, SessionOptions
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring import training as scored
from diptych.commerce.purchase_intent.scoring.training import ScoredTable
from diptych.commerce.purchase_intent.shown import TEXTS, Grid, number, pages_text, percent, place_text
from diptych.commerce.purchase_intent.statistics import ORDER, STATISTICS, Description, tables_of
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.options import command_line
from diptych.core.reading import read_json
from diptych.core.table import Table
from diptych.report.document import Block, Headline, Page, Section, Text
from diptych.report.style import shorten

PAGE = "report.html"


def page_of(folder: Path, log: Path | None = None) -> Page:
    """Return the page of a folder: of a description, with what its ``log`` dropped; of models or scores."""
    pages: dict[Any, Any] = {Description: partial(description_page, path=log)}
    pages |= {Evaluation: evaluation_page, Scorer: scorer_page, ScoredTable: scores_page, Drift: drift_page}
    kind = next((one for one in pages if one.is_at(folder)), None)
    if kind is None:
        problem = f"is no description, evaluation or scorer ({', '.join(one.marker() for one in pages)})"
        raise DataError(f"{folder} {problem}", f"make one, e.g. {Description.RECREATE}")
    if kind is not Description and (
        log is not None or evaluated.DisclosureControl.current() != evaluated.DisclosureControl()
    ):
        problem = f"--log, --hide-rates and --least-count are of descriptions, {folder} has {kind.marker()}"
        raise UsageError(problem, "leave them out: the page is about models and their rates")
    page: Page = pages[kind](kind.open(folder))
    return page


def description_page(description: Description, log: Log | None = None, path: Path | None = None) -> Page:
    """Return the page of a description, with what its import dropped where the log, or its path, is given."""
    about, options, log = description.about, description.options, log if path is None else Log.open(path)
    if log is not None and log.fingerprint != about["log_fingerprint"]:
        raise MismatchError(
            f"the description is of the log {about['log_fingerprint']}, {log.folder} is {log.fingerprint}",
            "give the log that was described, or describe this one",
        )
    parts: dict[str, Any] = {"journey": TEXTS["journeys"][options.journey], "rate": TEXTS["parts"]["rate"]}
    sections = []
    for title, text in TEXTS["description"].items():
        names = [name for name in description.statistics if STATISTICS.get(name).section == title]
        blocks: list[Block] = [chart for name in names for chart in description.charts(name)]
        blocks += [table for name in names for table in tables_of(description, name)]
        sections += [Section(title, blocks, text.format(**parts))] if blocks else []
    days = ""
    if log is not None:
        read = f"{number(log.n_events)} of {number(log.about['rows_read'])} rows are events of the log."
        text = f"{read} Read as {shorten(str(log.about['importer']), 80)}."
        notes = _sentences(log.about["notes"])
        sections.append(Section("Import", [*log.charts(), *log.tables()], text, notes))
        if log.about["first"]:
            days = f" from {log.about['first'][:10]} to {log.about['last'][:10]}"
    words = ["diptych", "intent", "describe", "LOG", "--out", "DESCRIPTION"]
    if set(description.statistics) != set(ORDER):
        words += [word for name in description.statistics for word in ("--statistic", name)]
    return Page(
        title=f"Purchase intent in {shorten(description.name, 80)}",
        summary=f"Sessions with a purchase and others, in {about['counts']['sessions']:,} sessions{days}.",
        headlines=_totals(description.totals()),
        sections=sections,
        protocol=description.facts(),
        notes=[*_sentences(description.notes), *evaluated.DisclosureControl.current().lines()],
        commands=[command_line(words, SessionOptions(**about["session_options"]), options)],
    )


def _totals(totals: Mapping[str, Any]) -> list[Headline]:
    if not totals.get("sessions"):
        return []
    count = {name: one if isinstance(one, str) else number(one) for name, one in totals.items()}
    found = [Headline("sessions", count["sessions"], f"of {count['events']} events")]
    for title, name, decimals in (("have a purchase", "purchase", 2), ("are anonymous", "anonymous", 1)):
        if (share := totals.get(f"{name} rate")) is not None:
            note = f"{count[f'{name} sessions']} sessions"
            found.append(Headline(title, f"{percent(share, decimals)} %", note))
    return [*found, Headline("visitors are known", count["identified visitors"])]


def evaluation_page(evaluation: Evaluation) -> Page:
    protocol, grid = evaluation.protocol, Grid(evaluation.cells)
    features = protocol.about["features"]
    sections = [
        Section(title, blocks, TEXTS["evaluation"][title].format(**TEXTS["parts"]))
        for title, blocks in evaluated.evaluation_blocks(evaluation.cells, evaluation.importance).items()
    ]
    summary, headlines = _best(grid, f" These are the best: {TEXTS['parts']['chosen']}.")
    words = ("diptych", "intent", "evaluate", "FEATURES", "--out", "EVALUATION")
    return Page(
        title=f"Predicting purchases: {shorten(str(features['name']), 80)}",
        summary=summary or "Nothing could be evaluated.",
        headlines=headlines,
        sections=[section for section in sections if section.blocks] if evaluation.cells else [],
        protocol={
            "population": TEXTS["populations"][
                "whole" if features["kind"] == "whole" else features["compat"]
            ],
            "protocol": evaluation.line(),
            "F1": "of predictions from a probability of 0.5 on, or a decision of 0",
            "fingerprints": f"features {protocol.features}, evaluation {protocol.key}",
            "made with": f"diptych {protocol.about['diptych']}",
        },
        notes=_sentences([*evaluated.left_out_lines(evaluation.left_out), *evaluation.notes]),
        commands=[command_line(words, EvaluateOptions(**protocol.options | {"samples": evaluation.samples}))],
    )


def _best(grid: Grid, chosen: str) -> tuple[str, list[Headline]]:
    """Return the best model of every setting as a sentence and as numbers; ``chosen`` says how it was chosen."""
    parts, headlines = [], []
    for best in grid.best.values():
        model = f"{grid.labels[best['model']]}, {place_text(best)}"
        when, value = pages_text(best["step"]), best["average_precision"]
        chance = f"by chance {number(best['base_rate'], 3)}"
        parts.append(f"{model}, {when}: average precision {number(value, 3)}, {chance}")
        note = f"{'the best ' if chosen else ''}{when}; purchases {percent(best['base_rate'])} %"
        headlines.append(Headline(f"average precision of {model}", number(value, 2), note))
    return f"{'; '.join(parts)}.{chosen}" if parts else "", headlines


def scorer_page(scorer: Scorer) -> Page:
    """Return the page of a scorer: how well it does on sessions it has not seen, an example, and its card."""
    about, blocks, notes = scorer.about, list[Block](), []
    if not scorer.is_whole:
        session = read_json(scorer.folder / scored.EXAMPLE)
        found = scorer.score(session, reasons=8)
        blocks = [scored.reasons_table(found.reasons)] if found.reasons else []
        notes = [f"{found.line()}.", *_sentences(found.notes)]
    least = (about["session_options"] or {}).get("pages", 0) + 2
    among, text = TEXTS["scorer"][about["kind"]].format(least=least), TEXTS["scorer"]["example"]
    return _measured_page(
        f"Scorer: {shorten(str(about['name']), 80)}",
        scored.measured_grid(about, "holdout"),
        scored.scorer_table(about),
        among,
        more=[
            Section("An example", blocks, text.format(file=scored.EXAMPLE), notes),
            Section("Model card", [Text("What it was made of and how", scored.model_card(about))]),
        ],
        notes=_sentences(about["notes"]),
        commands=[
            f"diptych intent score SCORER {'FEATURES --out SCORES' if scorer.is_whole else 'SESSION.json'}"
        ],
    )


def scores_page(scores: ScoredTable) -> Page:
    about, (table,) = scores.about, scores.tables()
    return _measured_page(
        f"Scores: {shorten(about['features'], 80)}",
        scored.measured_grid(about),
        table,
        protocol={
            "scorer": about["scorer"],
            "sessions": f"{about['features']}, fingerprint {about['features_fingerprint']}",
            "measured on": about["measured"],
            "F1": "at the scorer's threshold; nothing is fitted",
        },
        commands=["diptych intent evaluate FEATURES --scorer SCORER --out SCORES"],
    )


def drift_page(found: Drift) -> Page:
    """Return the page of a comparison of old and new sessions."""
    section, (first, *lines) = Section("What changed", (*found.charts(), *found.tables())), found.lines()
    return Page(title="Drift", summary=first, sections=[section], notes=lines)


def _measured_page(
    title: str, grid: Grid, table: Table, text: str = "", more: Sequence[Section] = (), **page: Any
) -> Page:
    charts = [chart for name in ("average_precision", "f1") for chart in evaluated.step_charts(grid, name)]
    sections = [
        Section("Measured", [*(charts if grid.by_step else []), table], text),
        Section("Probabilities", evaluated.reliability_charts(grid), TEXTS["scorer"]["bins"]),
        *more,
    ]
    summary, headlines = _best(grid, "")
    return Page(
        title=title,
        summary=summary or "Nothing was measured: one of the classes is missing.",
        headlines=headlines,
        sections=[one for one in sections if one.blocks or one.notes],
        **page,
    )


def _sentences(notes: Sequence[Any]) -> list[str]:
    texts = [shorten(str(note), 300) for note in notes]
    return [f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}" for text in texts]
