"""``diptych intent evaluate``: how well purchases are predicted, by model, feature set and step of a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.metrics.bootstrap import Bootstrap


def evaluate(
    features: Annotated[
        Path, typer.Argument(help="A folder that diptych intent features wrote.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The evaluation's folder; an unfinished one goes on.", show_default=False
        ),
    ],
    preset: Annotated[
        str,
        typer.Option(
            help="fast: three models, steps 0, 1, 5, 10, 5 folds; paper: six models, 11 steps, 10 folds."
        ),
    ] = "fast",
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model instead of the preset's, e.g. svm, linear-svm; an unknown name lists all. Repeatable, or "
            "with commas.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Feature set: baseline, extended. Repeatable.", show_default=False),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="anonymous, identified. Repeatable.", show_default=False),
    ] = None,
    step: Annotated[
        list[int] | None,
        typer.Option(help="Pages that are open. Repeatable.", show_default=False),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="random: sessions; grouped: all sessions of a person together; time: train before, test after."
        ),
    ] = "random",
    folds: Annotated[
        int | None,
        typer.Option(min=1, help="The preset's, or 1 of a split by time.", show_default=False),
    ] = None,
    balance: Annotated[
        bool, typer.Option("--balance/--no-balance", help="Let classes weigh the same where a model can.")
    ] = True,
    inner: Annotated[
        bool,
        typer.Option(
            "--inner/--no-inner",
            help="Fit thresholds and probabilities inside the training part; twice the time.",
        ),
    ] = True,
    importance: Annotated[
        bool, typer.Option("--importance/--no-importance", help="Compute the importance of features.")
    ] = True,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples of persons for 95 % intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, models and permutations.")] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes; the numbers do not depend on it.")
    ] = 1,
    scorer: Annotated[
        Path | None,
        typer.Option(
            help="Measure a trained scorer on these sessions instead; nothing is fitted.", show_default=False
        ),
    ] = None,
) -> None:
    """Evaluate models of purchase intent on every step of a session, with intervals, calibration and importance.

    Features are fitted on each fold's training part alone. Ctrl-C stops after the model that is being fitted, and
    the same command goes on; so it does after kill -9.

    Examples:

      [bold]diptych intent evaluate features --out evaluation[/bold]

      [bold]diptych intent evaluate features --out paper --preset paper --jobs 4[/bold]

      [bold]diptych intent evaluate features --out later --split time --model random-forest --step 0 --step 5[/bold]

      [bold]diptych intent evaluate later-features --scorer scorer --out held-out[/bold]
    """
    from diptych.commerce.purchase_intent.evaluation import evaluate as evaluate_models
    from diptych.commerce.purchase_intent.evaluation.shown import evaluation_tables, step_text
    from diptych.commerce.purchase_intent.features.table import open_features
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.intent import evaluation_page

    with progress(), stop_on_signal():
        table = open_features(features)
        how = Bootstrap(samples, seed=seed)
        page = out / "report.html"

        def write_page(finished: Evaluation) -> None:
            evaluation_page(finished).save(page)

        if scorer is not None:
            if model or set_ or folds:
                raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
            found = _of_scorer(table, scorer, out, _split(setting), step or None, how, write_page)
        else:
            found = evaluate_models(
                table,
                out,
                preset=preset,
                models=_split(model),
                sets=_split(set_),
                settings=_split(setting),
                steps=step or None,
                split=split,
                folds=folds,
                balanced=balance,
                inner=inner,
                importance=importance,
                seed=seed,
                jobs=jobs,
                bootstrap=how,
                page=write_page,
            )
    show(*(table for table in evaluation_tables(found) if not table.folded))
    for one in found.left_out:
        say(f"left out: {one['setting']}, step {step_text(one['step'])}: {one['reason']}")
    for note in (*found.notes, found.line()):
        say(note)
    say(
        f"every prediction and number in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed"
    )
    next_step(["open", page])


def _of_scorer(
    features: FeatureTable,
    scorer: Path,
    out: Path,
    settings: list[str] | None,
    steps: list[int] | None,
    how: Bootstrap,
    page: Callable[[Evaluation], object],
) -> Evaluation:
    from diptych.commerce.purchase_intent.evaluation import GivenScores, evaluate_scores
    from diptych.commerce.purchase_intent.scoring import Scorer

    trained = Scorer.open(scorer)
    options = trained.about["options"]
    return evaluate_scores(
        features,
        {
            (one.cell.setting, one.cell.step): GivenScores(one.p, one.cell.threshold)
            for one in trained.score_table(features, settings=settings, steps=steps)
        },
        out,
        model=options["model"],
        name=f"scorer {trained.about['name']}",
        trained_on=trained.about["fingerprint"],
        feature_set=options["feature_set"] if options["feature_set"] in features.sets else None,
        bootstrap=how,
        page=page,
    )


def _split(given: list[str] | None) -> list[str] | None:
    """Names of an option that may be repeated or have commas; None when it was not given."""
    return None if given is None else [name for text in given for name in text.split(",") if name]
