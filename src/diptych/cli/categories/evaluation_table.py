"""What is printed of an evaluation of models: a table per setting, what differs, levels, seen and unseen, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diptych.cli.console import print_table, say

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

__all__ = ["show_evaluation"]

_SHORT = "mAP@10"
"""The measure of the lines below a table."""

_BETTER, _WORSE = "▲", "▼"


def show_evaluation(found: ModelsEvaluation) -> None:
    """Print it; all numbers are in the folder."""
    for setting in found.settings:
        said = found.numbers["settings"][setting]
        _show_setting(setting, said)
        _show_groups(found, setting, said)
        _show_errors(found, setting, said)
    for model, reason in found.left_out.items():
        say(f"left out: {model}: {reason}")
    say(found.line())


def _show_setting(setting: str, said: Mapping[str, Any]) -> None:
    names = list(said["table"][0]["values"])
    marks = {(one["run"], one["measure"]): one["verdict"] for one in said["differences"]}
    best = {name: max(row["values"][name]["mean"] for row in said["table"]) for name in names}
    rows = []
    for row in said["table"]:
        cells = [
            _cell(row["values"][name], best[name], marks.get((row["model"], name), "")) for name in names
        ]
        rows.append([row["label"], *cells, _percent(row["products"]["R@1"]["mean"])])
    chance = {name: said["table"][0]["values"][name]["chance"] for name in names}
    rows.append(
        [
            "chance",
            *(_percent(chance[name]) for name in names),
            _percent(said["table"][0]["products"]["R@1"]["chance"]),
        ]
    )
    caption = f"{said['line']}; per cent, ± over seeds of training; * best"
    if said["comparison"]:
        caption += f"; {_BETTER} better, {_WORSE} worse than {said['baseline']}: {said['comparison']}"
    columns = ("model", *names, "right category")
    print_table(f"categories: {setting}", columns, rows, numbers=columns[1:], caption=caption)
    _show_intervals(said)


def _show_intervals(said: Mapping[str, Any]) -> None:
    ends = [
        f"{row['label']} {_percent(one['low'])}–{_percent(one['high'])}"
        for row in said["table"]
        if (one := row["values"][_SHORT])["low"] is not None
    ]
    if ends:
        say(f"  {_SHORT}, 95 % over categories: {', '.join(ends)}")


def _show_groups(found: ModelsEvaluation, setting: str, said: Mapping[str, Any]) -> None:
    model = found.baseline
    label = next(row["label"] for row in said["table"] if row["model"] == model)
    levels = said["levels"][model]
    if len(levels) > 1:
        parts = [
            f"level {one['group']} {_percent(one['values'][_SHORT]['mean'])} ({one['categories']:.0f})"
            for one in levels
        ]
        say(f"  {label}, {_SHORT} by level of the tree (categories): {', '.join(parts)}")
    seen = said["seen"][model]
    if seen:
        parts = [
            f"{'seen' if one['group'] else 'unseen'} {_percent(one['values'][_SHORT]['mean'])} "
            f"({one['categories']:.0f})"
            for one in reversed(seen)
        ]
        say(f"  {label}, {_SHORT} of categories that training saw: {', '.join(parts)}")


def _show_errors(found: ModelsEvaluation, setting: str, said: Mapping[str, Any]) -> None:
    model = found.baseline
    errors = said["errors"][model]
    counts = errors["all"]
    runs = "" if errors["runs"] == 1 else f" over {errors['runs']} seeds"
    text = (
        f"  first products of {model}{runs}: {counts['right']:,} of {counts['asked']:,} right, "
        f"{counts['same_tree']:,} wrong in the same tree, {counts['other_tree']:,} in another"
    )
    if counts["nothing"]:
        text += f", {counts['nothing']:,} found nothing"
    say(text)


def _cell(value: Mapping[str, Any], best: float, verdict: str) -> str:
    text = _percent(value["mean"])
    if value["sd"] is not None:
        text += f" ±{100 * value['sd']:.1f}"
    if value["mean"] == best and best > 0:
        text += " *"
    return text + {"better": f" {_BETTER}", "worse": f" {_WORSE}"}.get(verdict, "")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
