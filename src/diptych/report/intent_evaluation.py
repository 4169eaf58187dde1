"""An evaluation as a page: how well purchases are predicted, and by which protocol (thesis section 6.5)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.report.intent_discretion import percent, sentence
from diptych.report.intent_evaluation_sections import evaluated_headlines, evaluated_sections
from diptych.report.intent_page import Page, write_page
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.evaluation.plan import Protocol

Row = Mapping[str, Any]

_POPULATIONS = {
    "none": "sessions of at least 12 pages; at step k those whose purchase, if any, comes after k + 2 pages at "
    "least; identified are those whose visitor is known by then",
    "published": "sessions of at least 12 pages, also where the purchase lies before the step; identified are "
    "those whose visitor is known at any time (as published)",
}


def evaluation_page(evaluation: Evaluation) -> Page:
    """The page of an evaluation."""
    about, protocol = evaluation.about, evaluation.protocol
    features, name = about["features"], shorten(str(about["features"]["name"]), 80)
    sections = evaluated_sections(
        evaluation.cells,
        evaluation.importance,
        evaluation.gains,
        evaluation.left_out,
        {model: said["description"] for model, said in about["models"].items()},
    )
    how, folds = evaluation.results.intervals, about["split"]["folds"]
    facts = {
        "sessions": str(features["line"]),
        "population": "whole sessions, when they are over"
        if features["kind"] == "whole"
        else _POPULATIONS.get(features["compat"], str(features["compat"])),
        "split": f"{about['split']['name']}: {about['split']['description']}",
        **({"folds": _folds_line(folds)} if folds else {}),
        "protocol": protocol.line(),
        "F1": "of predictions from a probability of 0.5 on, or a decision of 0",
        "intervals": f"{100 * how['confidence']:g} %, {how['samples']:,} resamples of persons, seed "
        f"{how['seed']}"
        if how["samples"]
        else "none",
        "fingerprints": f"features {features['fingerprint']}, evaluation {protocol.key}",
        "made with": f"diptych {about['diptych']}",
    }
    notes = [sentence(note) for note in evaluation.notes]
    return Page(
        f"Predicting purchases: {name}",
        f"{len(evaluation.cells):,} cells of settings, feature sets, steps and models",
        evaluated_headlines(evaluation.cells),
        sections,
        facts,
        [note for note in notes if not note.startswith("Split ")],
        [] if protocol.scorer else [_command(protocol)],
    )


def write_evaluation_page(path: Path | str, evaluation: Evaluation) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    return write_page(path, evaluation_page(evaluation))


def _folds_line(folds: Sequence[Row]) -> str:
    trained, tested = (
        " to ".join(dict.fromkeys((f"{min(sizes):,}", f"{max(sizes):,}")))
        for sizes in ([fold["train"] for fold in folds], [fold["test"] for fold in folds])
    )
    shared = sum(fold["test_of_persons_in_training"] for fold in folds) / max(
        1, sum(fold["test"] for fold in folds)
    )
    said = f"{len(folds)}; trained on {trained} sessions, tested on {tested}"
    return f"{said}; {percent(shared)} % of test sessions are of persons with a session in training"


def _command(protocol: Protocol) -> str:
    """The evaluation again."""
    words = ["diptych", "intent", "evaluate", "FEATURES", "--out", "EVALUATION"]
    for option, values in (
        ("--model", protocol.models),
        ("--setting", protocol.settings),
        ("--set", protocol.sets),
        ("--step", protocol.steps),
    ):
        for value in values:
            # a step of whole sessions would read as an option
            words += [f"{option}={value}"] if str(value).startswith("-") else [option, str(value)]
    words += ["--split", protocol.split, "--folds", str(protocol.folds), "--seed", str(protocol.seed)]
    words += [] if protocol.balanced else ["--no-balance"]
    words += [] if protocol.inner else ["--no-inner"]
    words += [] if protocol.importance else ["--no-importance"]
    return shlex.join(words)
