"""``diptych intent evaluate``: how well purchases are predicted, by model, feature set and step of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import typer
from pydantic import BeforeValidator, Field, model_validator

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.sources import TargetOption
from diptych.core.errors import UsageError

Features = Annotated[
    Path,
    typer.Argument(
        metavar="FEATURES", help="A folder that diptych intent features wrote.", show_default=False
    ),
]


def _separated(given: list[str] | None) -> list[str] | None:
    """Return names of an option that is repeated or has commas; None when it was not given."""
    return given and [name for text in given for name in text.split(",") if name]


Names = Annotated[list[str] | None, BeforeValidator(_separated)]


class EvaluateOptions(TargetOption):
    """What is evaluated, and how."""

    preset: Literal["fast", "paper"] = Field(
        "fast",
        description="fast: three models, steps 0, 1, 5, 10, 5 folds; paper: six models, 11 steps, 10 folds.",
    )
    models: Names = Field(
        None,
        description="A model instead of the preset's, e.g. svm. Repeatable, or with commas.",
        json_schema_extra={
            "flags": ["--model"],
            "names": "diptych.commerce.purchase_intent.models:MODELS",
        },
    )
    sets: Names = Field(
        None,
        description="Feature set: baseline, extended. Repeatable.",
        json_schema_extra={"flags": ["--set"]},
    )
    settings: Names = Field(
        None, description="anonymous, identified. Repeatable.", json_schema_extra={"flags": ["--setting"]}
    )
    steps: list[int] | None = Field(
        None, description="Pages that are open. Repeatable.", json_schema_extra={"flags": ["--step"]}
    )
    split: str = Field(
        "random",
        description="random: sessions; grouped: all sessions of a person together; time: train before, test after.",
        json_schema_extra={"names": "diptych.commerce.purchase_intent.splits:SPLITS"},
    )
    folds: int | None = Field(
        None, ge=1, description="The preset's, or 1 of a split by time.", json_schema_extra={"metavar": "N"}
    )
    balanced: bool = Field(
        True,
        description="Let classes weigh the same where a model can.",
        json_schema_extra={"flags": ["--balance"]},
    )
    inner: bool = Field(
        True, description="Fit thresholds and probabilities inside the training part; twice the time."
    )
    importance: bool = Field(True, description="Compute the importance of features.")
    samples: int = Field(
        1000, ge=0, description="Bootstrap resamples of persons for 95 % intervals; 0 for none."
    )
    seed: int = Field(0, ge=0, description="Of folds, models and permutations.")
    jobs: int = Field(
        1,
        ge=1,
        description="Processes; the numbers do not depend on it.",
        json_schema_extra={"flags": ["--jobs", "-j"]},
    )
    scorer: Path | None = Field(
        None, description="Measure a trained scorer on these sessions instead; nothing is fitted."
    )

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.scorer is not None and (self.models or self.sets or self.folds):
            raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
        return self


def evaluate(features: Features, options: EvaluateOptions) -> None:
    """Evaluate models of purchase intent on every step of a session, with intervals and calibration.

    Features are fitted on each fold's training part alone. Ctrl-C stops after the model that is being fitted; the
    same command resumes, after kill -9 too.

    Examples:
        diptych intent evaluate features --out evaluation
        diptych intent evaluate features --out paper --preset paper --jobs 4
        diptych intent evaluate features --out later --split time --step 0 --step 5
        diptych intent evaluate later-features --scorer scorer --out held-out
    """
    from diptych.commerce.purchase_intent.evaluation import evaluate as evaluate_models
    from diptych.commerce.purchase_intent.evaluation.shown import evaluation_tables, step_text
    from diptych.commerce.purchase_intent.features import open_features
    from diptych.commerce.purchase_intent.scoring import Scorer
    from diptych.commerce.purchase_intent.scoring.table_scores import evaluate_scorer
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.intent import PAGE, evaluation_page

    out, page = options.out, options.out / PAGE
    same: dict[str, Any] = {
        **options.model_dump(include={"settings", "steps"}),
        "bootstrap": Bootstrap(options.samples, seed=options.seed),
        "page": lambda finished: evaluation_page(finished).save(page),
    }
    with progress(), stop_on_signal():
        table = open_features(features)
        if options.scorer is not None:
            found = evaluate_scorer(Scorer.open(options.scorer), table, out, **same)
        else:
            given = options.model_dump(exclude={"out", "samples", "scorer", *same})
            found = evaluate_models(table, out, **given, **same)
    show(*(one for one in evaluation_tables(found) if not one.folded))
    for left in found.left_out:
        say(f"left out: {left['setting']}, step {step_text(left['step'])}: {left['reason']}")
    for note in (*found.notes, found.line()):
        say(note)
    size = page.stat().st_size / 1e6
    say(f"every prediction and number in {out}; page {size:.1f} MB, no other files needed")
    next_step(["open", page])
