"""Tables and charts of category-to-image retrieval: an evaluation's, picks', a filled catalogue's, a run's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.commerce.category_to_image.filling import Reliability
    from diptych.commerce.category_to_image.picking import Picks
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.evaluation.result import Result

Numbers = Mapping[str, Any]

LEVEL_MEASURES = ("mAP@10", "P@1")
MOST_SIBLINGS = 10
_OTHERS = ("", ", other models")
_MARKS = {"better": " ▲", "worse": " ▼"}


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
    """Return a count that may be a mean over seeds."""
    return Cell(f"{value:,.0f}" if value == int(value) else f"{value:,.1f}", value=value)


def _interval(value: Numbers) -> str:
    return "" if value["low"] is None else f"{100 * value['low']:.1f}–{100 * value['high']:.1f}"


def measure_table(setting: str, numbers: Numbers) -> Table:
    """Return thesis Table 7.1: the best marked, what differs from the baseline, ± over seeds, chance below."""
    rows = numbers["table"]
    names = [name for name in rows[0]["values"] if "hits" not in name]
    verdicts = {(one["run"], one["measure"]): one["verdict"] for one in numbers["differences"]}
    values = [[*(row["values"][name] for name in names), row["products"]["R@1"]] for row in rows]
    highest = [max(one["mean"] for one in column) for column in zip(*values, strict=True)]
    lines = []
    for row, own in zip(rows, values, strict=True):
        cells = [Cell(row["label"])]
        for name, one, most in zip([*names, ""], own, highest, strict=True):
            best = one["mean"] == most > 0
            mark = _MARKS.get(verdicts.get((row["model"], name), ""), "")
            text = f"{100 * one['mean']:.1f}{' *' if best else ''}{mark}"
            note = "" if one["sd"] is None else f"±{100 * one['sd']:.1f}"
            cells.append(Cell(text, note, strong=best, value=one["mean"]))
        lines.append(cells)
    lines.append([Cell("chance"), *(percent(one["chance"]) for one in values[0])])
    after = f"{numbers['line']}; per cent, ± over seeds of training; * best"
    if numbers["comparison"]:
        after += f"; ▲ better, ▼ worse than {numbers['baseline']}: {numbers['comparison']}"
    groups = (("", 1), ("category → products", len(names)), ("product → category", 1))
    heads = ("Model", *names, "right category")
    return Table(setting_name(setting), heads, lines, groups, after)


def interval_table(setting: str, numbers: Numbers) -> Table:
    """Return every measure with its interval over categories, mAP as published code divides it among them."""
    names = list(numbers["table"][0]["values"])
    rows = []
    for row in numbers["table"]:
        values = [row["values"][name] for name in names]
        rows.append([Cell(row["label"]), *(percent(one["mean"], _interval(one)) for one in values)])
    after = "mAP@k divides by min(k, relevant products), mAP-hits@k by those among the first k."
    caption = f"{setting_name(setting)}: all measures with 95 % intervals over categories"
    return Table(caption, ("Model", *names), rows, after=after, folded=True)


def level_table(setting: str, numbers: Numbers, measure: str) -> Table:
    """Return one measure of every model on every level of the tree."""
    groups = numbers["levels"]
    depths = {one["group"]: one["categories"] for one in next(iter(groups.values()))}
    depths = depths if len(depths) > 1 else {}
    rows = []
    for row in numbers["table"]:
        whole = row["values"][measure]
        of_level = {one["group"]: one["values"][measure]["mean"] for one in groups[row["model"]]}
        cells = [percent(of_level[depth], shade=of_level[depth]) for depth in depths]
        rows.append([Cell(row["label"]), percent(whole["mean"], _interval(whole)), *cells])
    heads = [f"{depth} ({count:,.0f})" for depth, count in depths.items()]
    return Table(
        f"{measure} by level: {setting_name(setting).lower()}",
        ("Model", "all, 95 %", *heads),
        rows,
        after="Per cent; level 1 is the most general; in brackets: query categories of the level.",
        folded=measure != LEVEL_MEASURES[0],
    )


def _rows(settings: Mapping[str, Numbers], models: Iterable[str]) -> Iterator[tuple[str, str, str, Numbers]]:
    """Yield every model in every setting: its name, its label, the setting's name, and the setting's numbers."""
    for model, (setting, numbers) in product(models, settings.items()):
        label = next(row["label"] for row in numbers["table"] if row["model"] == model)
        yield model, label, setting_name(setting), numbers


def seen_table(settings: Mapping[str, Numbers], models: Iterable[str], folded: bool = False) -> Table | None:
    """Return thesis Table 7.3: categories that training saw and others; None where that is not known."""
    rows, names = [], []
    for model, label, setting, numbers in _rows(settings, models):
        names = list(numbers["table"][0]["values"])
        for one in reversed(numbers["seen"].get(model, ())):
            head = Cell(f"{label}, {'seen' if one['group'] else 'unseen'}", setting)
            values = [percent(one["values"][name]["mean"]) for name in names]
            rows.append([head, Cell(f"{one['categories']:,.0f}", value=one["categories"]), *values])
    if not rows:
        return None
    after = "Per cent. Seen: the category stood for some training product; means over seeds where training draws them."
    if not any(row[0].text.endswith("unseen") for row in rows):
        after += " Training saw every query category: there is nothing unseen to compare with."
    caption = f"Categories that training saw, and others{_OTHERS[folded]}"
    return Table(caption, ("Model", "categories", *names), rows, after=after, folded=folded)


_ERRORS = {"asked": "queries", "right": "right", "nothing": "none found"}
_ERRORS |= {"same_tree": "same tree", "other_tree": "other tree"}
_KINDS = {"ancestor": "above", "descendant": "below", "sibling": "sibling", "same tree": "else"}


def error_table(settings: Mapping[str, Numbers], models: Iterable[str], folded: bool = False) -> Table:
    """Return thesis Table 7.2, with what the first product's category is to the query."""
    rows = []
    for model, label, setting, numbers in _rows(settings, models):
        counts, runs = numbers["errors"][model]["all"], numbers["errors"][model]["runs"]
        values = [counts[name] for name in _ERRORS] + [counts["kinds"].get(kind, 0) for kind in _KINDS]
        rows.append([Cell(label, setting), *(_count(value / runs) for value in values)])
    return Table(
        f"First products of another category{_OTHERS[folded]}",
        ("Model", *_ERRORS.values(), *_KINDS.values()),
        rows,
        groups=(("", 4), ("wrong", 2), ("in the same tree: found is", 4)),
        after="Query categories by their first product; means over seeds of training.",
        folded=folded,
    )


def sibling_table(setting: str, numbers: Numbers, model: str) -> Table:
    """Return the siblings that products are taken for each other's, those most confused first."""
    runs = numbers["errors"][model]["runs"]
    rows = []
    for one in numbers["siblings"][model][:MOST_SIBLINGS]:
        share = one["confused"] / one["products"]
        counts = [one[name] / runs for name in ("left_as_right", "right_as_left", "products")]
        head = Cell(f"{one['left'][-1]} / {one['right'][-1]}", short_path(one["left"][:-1]))
        rows.append([head, *map(_count, counts), percent(share, "", share, "orange")])
    return Table(
        f"Siblings taken for each other by {model}: {setting_name(setting).lower()}",
        ("A / B", "A taken for B", "B taken for A", "products", "% confused"),
        rows,
        after="Each test product is a query for its category among the query categories; means over seeds of training.",
    )


def evaluation_tables(found: ModelsEvaluation) -> dict[str, list[Table]]:
    """Return the tables by what they answer; those of all models but the baseline are folded."""
    settings: Mapping[str, Numbers] = found.numbers["settings"]
    base = found.baseline
    rest = [model for model in found.models if model != base]
    seen = [seen_table(settings, [base]), seen_table(settings, rest, folded=True)]
    errors = [error_table(settings, [base]), *([error_table(settings, rest, folded=True)] if rest else [])]
    each = settings.items()
    return {
        "Which model finds products": [of(*one) for one in each for of in (measure_table, interval_table)],
        "Levels of the tree": [level_table(*one, measure) for one in each for measure in LEVEL_MEASURES],
        "Seen and unseen categories": [table for table in seen if table is not None],
        "Errors of the first product": errors,
        "Siblings": [sibling_table(name, one, base) for name, one in each if one["siblings"][base]],
    }


_OFFSETS = {
    "depths": ("depth of wrong ones in the same tree", "depth found − depth of the query"),
    "distances": ("distance of all wrong ones", "edges between found and query"),
}


def evaluation_charts(found: ModelsEvaluation) -> dict[str, list[Chart]]:
    """Return charts of the baseline: measures by level, and how far off its errors are (thesis Figure 7.2)."""
    base, settings = found.baseline, found.numbers["settings"]
    levels = {setting_name(name): one["levels"][base] for name, one in settings.items()}
    levels = {name: groups for name, groups in levels.items() if len(groups) > 1}
    by_level = []
    for measure in LEVEL_MEASURES if levels else ():
        lines = []
        for name, groups in levels.items():
            y = [100 * one["values"][measure]["mean"] for one in groups]
            lines.append(Series(name, y, [one["group"] for one in groups]))
        title = f"{base.upper()}: {measure} by level"
        by_level.append(Chart(title, lines, "level of the query category", f"{measure} in %"))
    errors = [chart for name in _OFFSETS if (chart := _error_chart(settings, base, name)).series]
    return {"Levels of the tree": by_level, "Errors of the first product": errors}


def _error_chart(settings: Mapping[str, Numbers], model: str, name: str) -> Chart:
    title, x = _OFFSETS[name]
    counts = {}
    for setting, numbers in settings.items():
        errors = numbers["errors"][model]
        if found := {int(key): value for key, value in errors["all"][name].items()}:
            counts[f"{setting_name(setting)} ({sum(found.values()) / errors['runs']:,.3g})"] = found
    places = {key for one in counts.values() for key in one}
    span = range(min(places), max(places) + 1) if places else range(0)
    lines = [
        Series(label, [100 * one.get(key, 0) / sum(one.values()) for key in span], [*span])
        for label, one in counts.items()
    ]
    after = "Different trees are joined above their roots. In brackets: errors per seed of training."
    return Chart(f"{model.upper()}: {title}", lines, x, "% of errors", after=after)


def pick_tables(picks: Picks) -> list[Table]:
    """Return what was picked, by level of the tree."""
    depth = picks.catalogue.tree.depth
    found, owner = np.diff(picks.start), np.repeat(depth[picks.nodes], np.diff(picks.start))
    is_all = picks.among == "all"  # among members everything is found that can be
    rows = []
    for level in range(1, int(depth.max(initial=0)) + 1):
        here = depth[picks.nodes] == level
        right, there = picks.right[owner == level], picks.there[here]
        could = int(np.minimum(there, picks.k).sum())
        share = [percent(int((right == 1).sum()) / could if could else None)] if is_all else []
        few, empty = int((there < picks.k).sum()), int((found[here] == 0).sum())
        counts = (_count(count) for count in (int(here.sum()), len(right), few))
        rows.append([Cell(str(level), value=level), *counts, *share, _count(empty)])
    split, heads = picks.about.get("split"), ["categories", "images", f"below {picks.k} products"]
    heads += ["% found"] if is_all else []
    caption = f"Images of {len(picks.catalogue):,} products{f' of split {split}' if split else ''}"
    after = "Level 1 is the most general." + (
        f" % found: of the products sorted into a category or below it that could be among its {picks.k}."
        if is_all
        else " All are images of products sorted into the category or below it."
    )
    return [Table(caption, ("level", *heads, "without an image"), rows, after=after)]


def pick_warnings(picks_about: Numbers, among: str) -> list[str]:
    """Return what should be known of picks before they are looked at."""
    setting = picks_about.get("ranker", {}).get("options", {}).get("setting", "all")
    found = []
    if among == "all" and setting != "all":
        found.append(
            f"the run was trained on {setting} categories alone; images for every level are found better by one of "
            "diptych categories train … --setting all --set resample=true"
        )
    if among == "all" and picks_about.get("trained_on"):
        found.append(
            f"the run was trained on {picks_about['trained_on']:,} of these products: what is right among them "
            "flatters it; --split test has others"
        )
    return found


def fill_tables(counts: Mapping[str, int], reliability: Reliability | None) -> list[Table]:
    """Return what confidence is worth on test products, and how many suggestions there are of which verdict."""
    from diptych.commerce.category_to_image.filling import VERDICTS

    tables = []
    if reliability is not None:
        rows = []
        for one in (*reliability.levels, reliability.whole):
            head = Cell(f"level {one.level}" if one.level else "whole path")
            shares = [percent(one.confidence), percent(one.accuracy)]
            rows.append([head, _count(one.products), *shares, Cell.number(one.error, 3)])
        kept = sum(count for levels, count, _ in reliability.cut if levels)
        after = (
            f"{kept:,} of them get at least one level at the threshold of {reliability.threshold:g}; calibration "
            "error: mean distance of confidence from accuracy over 15 bins"
        )
        caption = f"What confidence is worth on {reliability.products:,} test products"
        heads = ("", "products", "% confidence", "% right", "calibration error")
        tables.append(Table(caption, heads, rows, after=after))
    if counts:
        lines = [
            [Cell(one), _count(count), Cell(VERDICTS[one], words=True)]  # type: ignore[index]
            for one, count in counts.items()
        ]
        tables.append(Table("Suggestions", ("verdict", "products", "meaning"), lines))
    return tables


def run_tables(run: CategoryRun, tested: Result | None) -> list[Table]:
    """Return the measures of a run's test products."""
    from diptych.commerce.category_to_image.evaluation.measure import CATEGORY_MEASURES

    if tested is None:
        return []
    names = [name for name in CATEGORY_MEASURES if "hits" not in name]
    cells = [tested.score(name, "t2i") for name in names]
    rows = [
        [Cell(run.options.model), *(percent(one.value) for one in cells)],
        [Cell("chance"), *(percent(one.chance) for one in cells)],
    ]
    after = "per cent; categories ask for products, relevant by label; mAP@k divided by min(k, relevant)"
    return [Table(f"Test products, {run.options.setting}", ("model", *names), rows, after=after)]
