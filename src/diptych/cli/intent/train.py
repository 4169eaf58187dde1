"""``diptych intent train``: a scorer, one calibrated model per setting and step."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.scoring import Scorer
    from diptych.commerce.purchase_intent.sessions import SessionTables


def train(
    features: Annotated[
        Path, typer.Argument(metavar="FEATURES", help="A folder of features.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the scorer.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="A classifier; diptych info lists them.")
    ] = "hist-gradient-boosting",
    feature_set: Annotated[str, typer.Option("--set", help="Features: baseline or extended.")] = "extended",
    setting: Annotated[
        list[str] | None,
        typer.Option(help="anonymous or identified; both by default. Repeatable.", show_default=False),
    ] = None,
    step: Annotated[
        list[int] | None,
        typer.Option(help="Pages that are open; all steps by default. Repeatable.", show_default=False),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="time: fit on the past, calibrate and measure on what follows; or grouped by person."
        ),
    ] = "time",
    calibration: Annotated[float, typer.Option(help="Share of sessions to calibrate on.")] = 0.2,
    holdout: Annotated[float, typer.Option(help="Share of sessions to measure on.")] = 0.2,
    calibrate: Annotated[str, typer.Option(help="platt, or isotonic where there is enough data.")] = "platt",
    balanced: Annotated[
        bool, typer.Option("--balanced/--unbalanced", help="Classes weigh the same while a model is fitted.")
    ] = True,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples of persons for 95 % intervals; 0 for none.")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of models, parts and resamples.")] = 0,
    keep_history: Annotated[
        Path | None,
        typer.Option(
            help="The LOG of these features: keep its visitors' histories in the scorer, personal data, so that "
            "requests need not bring them.",
            metavar="LOG",
            show_default=False,
        ),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(
            help="A leak audit of these features, for the model card; the one in their folder, where there is one.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train a scorer: fitted on the earliest sessions, calibrated on later ones, measured on the last.

    Killed at any moment, the same command goes on where it stopped. The folder gets a model card and a made-up
    session to try it with.

    Examples:

      [bold]diptych intent train features --out scorer[/bold]

      [bold]diptych intent train features --out scorer --model logistic-regression --step 0 --step 5[/bold]

      [bold]diptych intent train features --out scorer --audit audit --calibrate isotonic[/bold]
    """
    from diptych.commerce.purchase_intent.auditing.checks import LeakAudit
    from diptych.commerce.purchase_intent.features.table import open_features
    from diptych.commerce.purchase_intent.scoring import TrainOptions
    from diptych.commerce.purchase_intent.scoring import train as fit
    from diptych.core.artifact import encode

    table = open_features(features)
    found = None
    if audit is not None or LeakAudit.is_at(features / "audit"):
        found = encode(LeakAudit.open(audit or features / "audit"), {})
        if found["features"] != table.fingerprint:
            raise UsageError(
                f"the audit is of other features than {features}", "audit these: diptych intent audit"
            )
    options = TrainOptions(
        model=model,
        feature_set=feature_set,
        calibration=calibration,
        holdout=holdout,
        calibrate=calibrate,
        split=split,
        balanced=balanced,
        samples=samples,
        seed=seed,
    )
    with progress(), stop_on_signal():
        history = None if keep_history is None else _sessions(table, keep_history)
        scorer = fit(
            table,
            out,
            options=options,
            settings=setting or None,
            steps=step or None,
            history=history,
            audit=found,
        )
    _show(scorer)
    example = scorer.folder / "example.json"
    next_step(
        shlex.join(["diptych", "intent", "score", str(out), str(example)])
        if example.is_file()
        else shlex.join(["diptych", "intent", "score", str(out), "TABLE.csv"])
    )


def _sessions(table: FeatureTable, log: Path) -> SessionTables:
    """The sessions that a table of features was made of."""
    from diptych.commerce.purchase_intent.sessions import SessionOptions, sessionise
    from diptych.data.logs.log import Log

    if table.is_whole:
        raise UsageError("--keep-history with whole sessions, which have none", "leave it out")
    tables = sessionise(Log.open(log), SessionOptions(**table.about["session_options"]))
    if tables.fingerprint != table.about["sessions_fingerprint"]:
        raise UsageError(f"the features were not made of {log}", "give the log that they were made of")
    return tables


def _show(scorer: Scorer) -> None:
    """Print a row per model, and notes about them."""
    from diptych.commerce.purchase_intent.scoring.shown import scorer_table

    show(scorer_table(scorer))
    for cell in scorer.about["cells"]:
        for note in cell["notes"]:
            say(f"{cell['setting']}, step {cell['step']}: {note}")
    for one in scorer.about["not_trained"]:
        say(f"not trained: {one['setting']}, step {one['step']}: {one['reason']}")
    slices = scorer.about["slices"]
    sizes = ", ".join(f"{name} {size:,}" for name, size in slices["sizes"].items())
    say(f"{slices['note']}: {sizes}; {slices['left_out']:,} run across an end and are in none")
    if scorer.about["history"]:
        say(f"the scorer holds the histories of {scorer.about['history']:,} visitors: personal data")
    say(f"{scorer.describe()}; see {scorer.folder / 'model_card.md'}")
