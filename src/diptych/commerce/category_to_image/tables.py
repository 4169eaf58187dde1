"""Tables and charts of category-to-image retrieval: an evaluation's, picks', a filled catalogue's, a run's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.picking import Picks
    from diptych.evaluation.result import Result

Numbers = Mapping[str, Any]

LEVEL_MEASURES = ("mAP@10", "P@1")
MOST_SIBLINGS = 10
_MARKS = {"better": " ▲", "worse": " ▼"}
_ERRORS = {"asked": "queries", "right": "right", "nothing": "none found"}
_ERRORS |= {"same_tree": "same tree", "other_tree": "other tree"}
_KINDS = {"ancestor": "above", "descendant": "below", "sibling": "sibling", "same tree": "else"}
_OFFSETS = {
    "depths": ("depth of wrong ones in the same tree", "depth found − depth of the query"),
    "distances": ("distance of all wrong ones", "edges between found and query"),
}


def setting_name(setting: str) -> str:
    """Return a setting's name as thesis Table 7.1 heads its parts."""
    return "All categories" if setting == "all" else f"{setting.replace('-', ' ').capitalize()} category"


def short_path(path: Sequence[str]) -> str:
    """Return the most general category and the two most specific ones."""
    return " › ".join(path if len(path) <= 3 else [path[0], "…", *path[-2:]])


def percent(share: float | None, note: str = "", shade: float = 0.0, colour: str = "blue") -> Cell:
    """Return a share as a cell, in per cent."""
    return Cell("–") if share is None else Cell(f"{100 * share:.1f}", note, shade, colour, value=share)


def _count(value: float) -> Cell:
    return Cell.number(value, 0 if value == int(value) else 1)


def _with_interval(value: Numbers) -> Cell:
    low, high = value["low"], value["high"]
    return percent(value["mean"], "" if low is None else f"{100 * low:.1f}–{100 * high:.1f}")


def measure_table(setting: str, numbers: Numbers) -> Table:
    """Return thesis Table 7.1: the best marked, what differs from the baseline, ± over seeds, chance below."""
    names = [name for name in numbers["table"][0]["values"] if "hits" not in name]
    heads = {**{name: ("values", name) for name in names}, "right category": ("products", "R@1")}
    after = f"{numbers['line']}; per cent, ± over seeds of training; * best"
    if numbers["comparison"]:
        after += f"; ▲ better, ▼ worse than {numbers['baseline']}: {numbers['comparison']}"
    groups = (("", 1), ("category → products", len(names)), ("product → category", 1))
    return _scores(setting_name(setting), numbers, heads, groups=groups, after=after)


def leaderboard_table(setting: str, numbers: Numbers) -> Table:
    """Return the measures of Marqo's e-commerce leaderboards."""
    heads = {name: ("leaderboard", name) for name in numbers["table"][0]["leaderboard"]}
    after = "Per cent; mAP over the whole gallery, MRR of the first relevant product, as Marqo's leaderboards print."
    return _scores(f"{setting_name(setting)}: leaderboard measures", numbers, heads, after=after)


def _scores(caption: str, numbers: Numbers, heads: Mapping[str, tuple[str, str]], **more: Any) -> Table:
    """Return a row per model and one of chance; ``heads``: part and measure of every column."""
    verdicts = {("values", one["run"], one["measure"]): one["verdict"] for one in numbers["differences"]}
    best = {
        head: max(row[part][name]["mean"] for row in numbers["table"]) for head, (part, name) in heads.items()
    }
    lines = [[Cell(row["label"])] for row in numbers["table"]]
    for row, cells in zip(numbers["table"], lines, strict=True):
        for head, (part, name) in heads.items():
            one = row[part][name]
            strong = one["mean"] == best[head] > 0
            mark = _MARKS.get(verdicts.get((part, row["model"], name), ""), "")
            note = "" if one["sd"] is None else f"±{100 * one['sd']:.1f}"
            text = f"{100 * one['mean']:.1f}{' *' if strong else ''}{mark}"
            cells.append(Cell(text, note, strong=strong, value=one["mean"]))
    first = numbers["table"][0]
    chance = [percent(first[part][name]["chance"]) for part, name in heads.values()]
    return Table(caption, ("Model", *heads), [*lines, [Cell("chance"), *chance]], **more)


def interval_table(setting: str, numbers: Numbers) -> Table:
    """Return every measure with its interval over categories, mAP as published code divides it among them."""
    rows = [[Cell(row["label"]), *map(_with_interval, row["values"].values())] for row in numbers["table"]]
    after = "mAP@k divides by min(k, relevant products), mAP-hits@k by those among the first k."
    caption = f"{setting_name(setting)}: all measures with 95 % intervals over categories"
    return Table(caption, ("Model", *numbers["table"][0]["values"]), rows, after=after, folded=True)


def level_table(setting: str, numbers: Numbers, measure: str) -> Table:
    """Return one measure of every model on every level of the tree."""
    first = next(iter(numbers["levels"].values()))
    shown, rows = first if len(first) > 1 else [], []
    for row in numbers["table"]:
        means = [one["values"][measure]["mean"] for one in numbers["levels"][row["model"]][: len(shown)]]
        shaded = [percent(mean, shade=mean) for mean in means]
        rows.append([Cell(row["label"]), _with_interval(row["values"][measure]), *shaded])
    heads = [f"{one['group']} ({one['categories']:,.0f})" for one in shown]
    after = "Per cent; level 1 is the most general; in brackets: query categories of the level."
    caption, folded = f"{measure} by level: {setting_name(setting).lower()}", measure != LEVEL_MEASURES[0]
    return Table(caption, ("Model", "all, 95 %", *heads), rows, after=after, folded=folded)


def _each(settings: Mapping[str, Numbers], models: Iterable[str]) -> list[tuple[str, str, str, Numbers]]:
    return [
        (model, next(row["label"] for row in numbers["table"] if row["model"] == model), setting, numbers)
        for model in models
        for setting, numbers in settings.items()
    ]


def seen_table(settings: Mapping[str, Numbers], models: Iterable[str], folded: bool = False) -> Table | None:
    """Return thesis Table 7.3: categories that training saw and others; None where that is not known."""
    rows, names = [], []
    for model, label, setting, numbers in _each(settings, models):
        for one in reversed(numbers["seen"][model]):
            names = list(one["values"])
            head = Cell(f"{label}, {'seen' if one['group'] else 'unseen'}", setting_name(setting))
            values = (percent(value["mean"]) for value in one["values"].values())
            rows.append([head, _count(round(one["categories"])), *values])
    after = "Per cent. Seen: the category stood for some training product; means over seeds where training draws them."
    if not any(row[0].text.endswith("unseen") for row in rows):
        after += " Training saw every query category: there is nothing unseen to compare with."
    caption = f"Categories that training saw, and others{', other models' if folded else ''}"
    heads = ("Model", "categories", *names)
    return Table(caption, heads, rows, after=after, folded=folded) if rows else None


def unseen_table(setting: str, numbers: Numbers) -> Table:
    """Return the query categories that training never saw."""
    rows = [
        [Cell(short_path(one["category"]), words=True), _count(one["relevant"])]
        + [percent(value) for value in one["mAP@10"].values()]
        for one in numbers["unseen"]
    ]
    heads = [row["label"] for row in numbers["table"]]
    after = "mAP@10 in per cent, the mean over seeds; no training of any seed saw these categories."
    caption = f"Unseen categories: {setting_name(setting).lower()}"
    return Table(caption, ("category", "products", *heads), rows, after=after, folded=True)


def error_table(settings: Mapping[str, Numbers], models: Iterable[str], folded: bool = False) -> Table:
    """Return thesis Table 7.2, with the relation of the first product's category to the query."""
    rows = []
    for model, label, setting, numbers in _each(settings, models):
        counts, runs = numbers["errors"][model]["all"], numbers["errors"][model]["runs"]
        values = [counts[name] for name in _ERRORS] + [counts["kinds"].get(kind, 0) for kind in _KINDS]
        rows.append([Cell(label, setting_name(setting)), *(_count(value / runs) for value in values)])
    return Table(
        f"First products of another category{', other models' if folded else ''}",
        ("Model", *_ERRORS.values(), *_KINDS.values()),
        rows,
        groups=(("", 4), ("wrong", 2), ("in the same tree: found is", 4)),
        after="Query categories by their first product; means over seeds of training.",
        folded=folded,
    )


def sibling_table(setting: str, numbers: Numbers, model: str) -> Table:
    """Return the siblings that products are taken for each other's, those most confused first."""
    runs, rows = numbers["errors"][model]["runs"], []
    for one in numbers["siblings"][model][:MOST_SIBLINGS]:
        share = one["confused"] / one["products"]
        counts = (_count(one[name] / runs) for name in ("left_as_right", "right_as_left", "products"))
        head = Cell(f"{one['left'][-1]} / {one['right'][-1]}", short_path(one["left"][:-1]))
        rows.append([head, *counts, percent(share, "", share, "orange")])
    caption = f"Siblings taken for each other by {model}: {setting_name(setting).lower()}"
    heads = ("A / B", "A taken for B", "B taken for A", "products", "% confused")
    after = "Each test product is a query for its category among the query categories; means over seeds of training."
    return Table(caption, heads, rows, after=after)


def evaluation_sections(
    settings: Mapping[str, Numbers], base: str, models: Sequence[str]
) -> dict[str, list[Table | Chart]]:
    """Return tables and charts by what they answer; tables of all models but the baseline are folded."""
    each, rest = settings.items(), [model for model in models if model != base]
    parts = [([base], False), *([(rest, True)] if rest else [])]
    seen = [seen_table(settings, some, folded) for some, folded in parts]
    errors = [error_table(settings, some, folded) for some, folded in parts]
    offsets = [_error_chart(settings, base, name) for name in _OFFSETS]
    return {
        "Which model finds products": [of(*one) for one in each for of in (measure_table, interval_table)],
        "Measures of leaderboards": [leaderboard_table(*one) for one in each],
        "Levels of the tree": [level_table(*one, measure) for one in each for measure in LEVEL_MEASURES],
        "Seen and unseen categories": [one for one in seen if one is not None],
        "Unseen categories": [unseen_table(*one) for one in each if one[1]["unseen"]],
        "Errors of the first product": [*errors, *(chart for chart in offsets if chart.series)],
        "Siblings": [sibling_table(name, one, base) for name, one in each if one["siblings"][base]],
    }


def _error_chart(settings: Mapping[str, Numbers], model: str, name: str) -> Chart:
    """Return how far off the errors of a model are (thesis Figure 7.2)."""
    counts = {}
    for setting, numbers in settings.items():
        errors = numbers["errors"][model]
        if found := {int(key): value for key, value in errors["all"][name].items()}:
            counts[f"{setting_name(setting)} ({sum(found.values()) / errors['runs']:,.3g})"] = found
    places = [0] if not counts else [key for one in counts.values() for key in one]
    span, lines = range(min(places), max(places) + 1), []
    for label, one in counts.items():
        lines.append(Series(label, [100 * one.get(key, 0) / sum(one.values()) for key in span], [*span]))
    (title, x), after = (
        _OFFSETS[name],
        "Different trees are joined above their roots. In brackets: errors per seed of training.",
    )
    return Chart(f"{model.upper()}: {title}", lines, x, "% of errors", after=after)


def pick_tables(picks: Picks) -> list[Table]:
    """Return what was picked, by level of the tree."""
    depth, found, k, rows = picks.catalogue.tree.depth, np.diff(picks.start), picks.k, []
    owner, is_all = np.repeat(depth, found), picks.among == "all"
    for level in range(1, int(depth.max(initial=0)) + 1):
        right, there = picks.right[owner == level], picks.there[depth == level]
        could = int(np.minimum(there, k).sum())
        share = [percent(int((right == 1).sum()) / could if could else None)] if is_all else []
        counts = map(_count, (level, len(there), len(right), int((there < k).sum())))
        rows.append([*counts, *share, _count(int((found[depth == level] == 0).sum()))])
    split = picks.about.get("split")
    heads = ["level", "categories", "images", f"below {k} products", "% found", "without an image"]
    caption = f"Images of {len(picks.catalogue):,} products{f' of split {split}' if split else ''}"
    after = "Level 1 is the most general."
    if is_all:
        after += f" % found: of the products sorted into a category or below it that could be among its {k}."
    else:
        heads.remove("% found")  # among members everything is found that can be
    return [Table(caption, tuple(heads), rows, after=after)]


def pick_warnings(about: Numbers, among: str) -> list[str]:
    """Return what should be known of picks before they are looked at."""
    setting = about.get("ranker", {}).get("options", {}).get("setting", "all")
    found = []
    if among == "all" and setting != "all":
        found.append(f"the run was trained on {setting} categories only; --setting all is for every level")
    if among == "all" and about.get("trained_on"):
        known = f"the run was trained on {about['trained_on']:,} of these products"
        found.append(f"{known}: its share of right ones is too high; --split test has others")
    return found


def fill_tables(
    counts: Mapping[str, int], meanings: Mapping[str, str], reliability: Numbers | None
) -> list[Table]:
    """Return what confidence is worth on test products, and how many suggestions there are of which verdict."""
    tables, rows = [], []
    if reliability is not None:
        for one in (*reliability["levels"], reliability["whole"]):
            head = Cell(f"level {one['level']}" if one["level"] else "whole path")
            shares = percent(one["confidence"]), percent(one["accuracy"]), Cell.number(one["error"], 3)
            rows.append([head, _count(one["products"]), *shares])
        after = (
            f"{reliability['kept']:,} of them get at least one level at the threshold of "
            f"{reliability['threshold']:g}; calibration error: mean distance of confidence from accuracy over 15 bins"
        )
        caption = f"What confidence is worth on {reliability['products']:,} test products"
        heads = ("", "products", "% confidence", "% right", "calibration error")
        tables.append(Table(caption, heads, rows, after=after))
    if counts:
        lines = [[Cell(one), _count(count), Cell(meanings[one], words=True)] for one, count in counts.items()]
        tables.append(Table("Suggestions", ("verdict", "products", "meaning"), lines))
    return tables


def run_tables(run: str, setting: str, tested: Result, measures: Sequence[str]) -> list[Table]:
    """Return the measures of a run's test products."""
    cells = [tested.score(name, "t2i") for name in measures]
    rows = [
        [Cell(run), *(percent(one.value) for one in cells)],
        [Cell("chance"), *(percent(one.chance) for one in cells)],
    ]
    after = "per cent; categories are queries, products relevant by label; mAP@k divided by min(k, relevant)"
    return [Table(f"Test products, {setting}", ("model", *measures), rows, after=after)]
