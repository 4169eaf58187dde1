"""``diptych intent audit``: has the answer got into the question?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, print_table, say
from diptych.cli.options import OutFolder
from diptych.cli.progress import progress
from diptych.core.errors import DataError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.auditing import LeakAudit

__all__ = ["audit"]


def audit(
    features: Annotated[
        Path, typer.Argument(metavar="FEATURES", help="A folder of features.", show_default=False)
    ],
    log: Annotated[
        Path | None,
        typer.Option(help="The log that they were made of; the shift test needs it.", show_default=False),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="shift, known-columns, single-column, permuted-labels, drift; all by default. Repeatable.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="The classifier that looks for leaks; diptych info lists them.")
    ] = "hist-gradient-boosting",
    feature_set: Annotated[str, typer.Option("--set", help="Features: baseline or extended.")] = "extended",
    step: Annotated[
        list[int] | None,
        typer.Option(
            help="Where models are fitted; 0, 1, 5 and 10 by default. Repeatable.", show_default=False
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=2, help="How many times labels are permuted.")] = 6,
    most: Annotated[int, typer.Option(min=100, help="Sessions in a part, at most; drawn.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Of everything drawn.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Show every finding, not the foremost.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when there is an alarm.")] = False,
    out: OutFolder = None,
) -> None:
    """Look for leaks: features that know the future, labels that are found without being told, columns too good.

    The audit is written into the features' folder when no other is named; a scorer trained on the features carries
    it in its model card.

    Examples:

      [bold]diptych intent audit features --log log[/bold]

      [bold]diptych intent audit features --check single-column --strict --out audit[/bold]
    """
    from diptych.commerce.purchase_intent.auditing import AuditOptions
    from diptych.commerce.purchase_intent.auditing import audit as run
    from diptych.commerce.purchase_intent.features.table import open_features
    from diptych.data.logs.log import Log

    table = open_features(features)
    options = AuditOptions(
        feature_set=feature_set,
        steps=tuple(step) if step else None,
        model=model,
        repeats=repeats,
        most=most,
        seed=seed,
    )
    target = features / "audit" if out is None else out
    with progress():
        found = run(table, None if log is None else Log.open(log), options=options, checks=check or None)
        found.save(target)
    _show(found, every)
    say(found.line())
    say(f"all findings in {target}")
    if found.alarms and strict:
        raise DataError(f"{len(found.alarms)} alarms", "see what the columns are computed from, and when")
    next_step(shlex.join(["diptych", "intent", "train", str(features), "--out", "scorer"]))


def _show(found: LeakAudit, every: bool) -> None:
    """Alarms, and of every check that which comes nearest to one; or all findings."""
    shown = [one for one in found.findings if every or one.alarm]
    for name in found.checks:
        mine = [one for one in found.findings if one.check == name]
        if not any(one in shown for one in mine):
            shown.append(max(mine, key=lambda one: -1.0 if one.value is None else one.value))
    order = list(found.checks)
    rows = [
        (
            one.check,
            one.where,
            "" if one.value is None else f"{one.value:.3f}",
            "" if one.low is None or one.high is None else f"[{one.low:.3f}, {one.high:.3f}]",
            "ALARM" if one.alarm else "",
            f"{one.statistic}: {one.text}" if one.statistic else one.text,
        )
        for one in sorted(shown, key=lambda one: order.index(one.check))
    ]
    numbers = ("value", "interval", "alarm")
    hidden = len(found.findings) - len(shown)
    caption = f"{hidden:,} more findings below these; --all shows them" if hidden else ""
    print_table("", ("check", "where", *numbers, "what"), rows, numbers=numbers, caption=caption)
