"""``diptych intent train``: a scorer, one calibrated model per setting and step."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.intent.evaluate import Features
from diptych.cli.sources import TargetOption
from diptych.commerce.purchase_intent.options import TrainOptions


class ScorerOptions(TargetOption):
    """What a scorer holds."""

    setting: list[str] = Field([], description="anonymous or identified; both by default. Repeatable.")
    step: list[int] = Field([], description="Pages that are open; all steps by default. Repeatable.")
    keep_history: Path | None = Field(
        None,
        description="The log of these features: keep its visitors' histories, personal data, in the scorer, so that "
        "requests need not bring them.",
        json_schema_extra={"metavar": "LOG"},
    )
    audit: Path | None = Field(
        None, description="A leak audit for the model card; the one in the features' folder by default."
    )


def train(features: Features, wanted: ScorerOptions, options: TrainOptions) -> None:
    """Train a scorer: fitted on the earliest sessions, calibrated on later ones, measured on the last.

    Killed at any moment, the same command resumes. The folder gets a model card and a made-up session to try it with.

    Examples:
        diptych intent train features --out scorer
        diptych intent train features --out scorer --model svm --step 5
        diptych intent train features --out scorer --calibrate isotonic
    """
    from diptych.commerce.purchase_intent.auditing import LeakAudit
    from diptych.commerce.purchase_intent.features import open_features
    from diptych.commerce.purchase_intent.scoring import train as fit
    from diptych.commerce.purchase_intent.scoring.shown import EXAMPLE, scorer_table
    from diptych.data.logs import Log

    table = open_features(features)
    found = LeakAudit.beside(table, wanted.audit)
    log = wanted.keep_history
    with progress(), stop_on_signal():
        scorer = fit(
            table,
            wanted.out,
            options=options,
            settings=wanted.setting or None,
            steps=wanted.step or None,
            history=None if log is None else table.sessions(Log.open(log)),
            audit=found,
        )
    show(scorer_table(scorer))
    for line in scorer.lines():
        say(line)
    say(f"{scorer.describe()}; see {scorer.folder / 'model_card.md'}")
    example = scorer.folder / EXAMPLE
    next_step(["diptych", "intent", "score", wanted.out, example if example.is_file() else "TABLE.csv"])
