"""``diptych intent evaluate``: how well purchases are predicted, by model, feature set and step of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console import next_step, print_table, progress, say, stop_on_signal
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.metrics.bootstrap import Bootstrap


_STEPS = 5
"""Columns of a table; of more steps some are shown."""

_FEATURES = 5


def show_evaluation(evaluation: Evaluation) -> None:
    """Print it."""
    for setting in _once(cell["setting"] for cell in evaluation.cells):
        cells = [cell for cell in evaluation.cells if cell["setting"] == setting]
        _show_setting(setting, cells)
        _show_gain(evaluation, setting)
        _show_importance(evaluation, setting)
    for one in evaluation.left_out:
        say(f"left out: {one['setting']}, {_step(one['step'])}: {one['reason']}")
    for note in evaluation.notes:
        say(note)
    say(evaluation.line())


def _show_setting(setting: str, cells: Sequence[dict[str, Any]]) -> None:
    steps = sorted({cell["step"] for cell in cells})
    shown = _some(steps)
    first = {cell["step"]: cell for cell in reversed(cells)}
    rows: list[list[str]] = [
        ["base rate", "", *(f"{first[step]['base_rate']:.3f}" for step in shown)],
        ["always buy", "", *(f"{first[step]['always_buy_f1']:.3f}" for step in shown)],
    ]
    by_row: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for cell in cells:
        by_row.setdefault((cell["label"], cell["set"]), {})[cell["step"]] = cell
    for (label, feature_set), of_step in by_row.items():
        values = [
            f"{_number(of_step[step]['f1'])} / {_number(of_step[step]['average_precision'])}"
            if step in of_step
            else "–"
            for step in shown
        ]
        rows.append([label, feature_set, *values])
    columns = [_step(step) for step in shown]
    said = "base rate: share of purchases, the average precision of chance; always buy: F1 of predicting nothing else"
    if len(shown) < len(steps):
        said += f"; {len(shown)} of {len(steps)} steps"
    print_table(
        f"{setting}: F1 at 0.5 / average precision",
        ("model", "set", *columns),
        rows,
        numbers=columns,
        caption=said,
    )


def _show_gain(evaluation: Evaluation, setting: str) -> None:
    """What the extended set adds at the first and the last step, to the model whose importances are shown."""
    model = evaluation.protocol.importance_model or evaluation.protocol.models[0]
    gains = [
        one
        for one in evaluation.gains
        if (one["setting"], one["model"], one["measure"]) == (setting, model, "average_precision")
    ]
    for one in gains[:1] + gains[1:][-1:]:
        between = "" if one["low"] is None else f" [{one['low']:+.3f}, {one['high']:+.3f}]"
        say(
            f"extended less baseline, {setting}, {_step(one['step'])}, {model}: "
            f"{one['difference']:+.3f}{between} average precision"
        )


def _show_importance(evaluation: Evaluation, setting: str) -> None:
    rows = [row for row in evaluation.importance if row["setting"] == setting]
    if not rows:
        return
    last = rows[-1]
    mine = [row for row in rows if (row["set"], row["step"]) == (last["set"], last["step"])][:_FEATURES]
    named = ", ".join(f"{row['feature']} {_number(row['permutation'])}" for row in mine)
    say(
        f"foremost features, {setting}, {last['set']}, {_step(last['step'])}, {last['model']} "
        f"(average precision lost by permuting): {named}"
    )


def _some(steps: Sequence[int]) -> list[int]:
    """At most :data:`_STEPS` of them: the first two, the last, and some between."""
    if len(steps) <= _STEPS:
        return list(steps)
    between = [steps[round(1 + (len(steps) - 2) * part / (_STEPS - 2))] for part in range(1, _STEPS - 2)]
    return [*steps[:2], *between, steps[-1]]


def _step(step: int) -> str:
    return "whole session" if step < 0 else f"step {step}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _once(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


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
    from diptych.commerce.purchase_intent.features.table import open_features
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.intent_evaluation import write_evaluation_page

    with progress(), stop_on_signal():
        table = open_features(features)
        how = Bootstrap(samples, seed=seed)
        page = out / "report.html"

        def write_page(finished: Evaluation) -> None:
            write_evaluation_page(page, finished)

        if scorer is not None:
            if model or set_ or folds:
                raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
            found = _of_scorer(table, scorer, out, _split(setting), step or None, how, write_page)
        else:
            found = _of_models(
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
    show_evaluation(found)
    say(
        f"every prediction and number in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed"
    )
    next_step(["open", page])


def _of_models(features: FeatureTable, out: Path, **said: Any) -> Evaluation:
    from diptych.commerce.purchase_intent.evaluation import evaluate as evaluated

    return evaluated(features, out, **said)


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
