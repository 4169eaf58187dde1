"""The numbers of an evaluation, computed once from its units, and their tables and charts (thesis 7.4 to 7.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from diptych.commerce.catalogue import Catalogue, Judged
from diptych.commerce.category_to_image.rankers import CATEGORY_MEASURES, LEADERBOARD, PRODUCT_MEASURES
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell as TableCell
from diptych.core.table import Table
from diptych.evaluation.comparison import Difference, Spread
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums
from diptych.metrics.ground_truth import Direction
from diptych.metrics.paired import correction_text, paired

_SIBLINGS, _EXAMPLES = 10, 6  # how many are kept
_LABELS = {"sentence": "sentence encoder", "mixed": "mixed"}  # of others their name in capitals
_MARKS = {"better": " ▲", "worse": " ▼"}
_ERRORS = {"asked": "queries", "right": "right", "nothing": "none found"}
_ERRORS |= {"same_tree": "same tree", "other_tree": "other tree"}
_KINDS = {"ancestor": "above", "descendant": "below", "sibling": "sibling", "same tree": "else"}
_OFFSETS = {
    "depths": ("depth of wrong ones in the same tree", "depth found − depth of the query"),
    "distances": ("distance of all wrong ones", "edges between found and query"),
}

Numbers = Mapping[str, Any]
Values = Mapping[str, Mapping[str, Sequence[np.ndarray]]]  # (q,) per model, measure and seed


@dataclass(frozen=True, eq=False)
class Cell(Artifact, kind="category_cell", version=2, recreate="diptych categories evaluate DATA"):
    """One model in one setting, of one seed."""

    result: Result  # ``t2i``: categories as queries, ``i2t``: products
    nodes: np.ndarray  # (q,) int64 query categories
    first: np.ndarray  # (q,) int64 row of each one's first product, -1 for none
    score: np.ndarray  # (q,) float64 its score
    found: np.ndarray  # (q,) int64 its own category, -1 for none
    right: np.ndarray  # (q,) booleans: it is relevant
    guess: np.ndarray  # (n,) int64 category that each judged product found first, -1 for none
    seen: np.ndarray | None  # (q,) booleans: training saw the category; None where that is not known
    about: dict[str, Any]  # the model, seconds


def baseline_of(models: Sequence[str]) -> str:
    """Return the model that others are compared with: CLIP-ITA as in the thesis, or the last that there is."""
    return "clip-ita" if "clip-ita" in models else models[-1]


def compare_models(values: Values, baseline: str, how: Bootstrap) -> list[Difference]:
    """Compare every model with a baseline by the thesis's measures, category by category.

    Categories are swapped and resampled, their values averaged over seeds first: a p-value says whether the
    difference would be there with other categories, not with other seeds.
    """
    pairs = [(model, name) for model in values if model != baseline for name in CATEGORY_MEASURES]
    gaps = [
        [np.mean(values[one][name], axis=0) - np.mean(values[baseline][name], axis=0)] for one, name in pairs
    ]
    tests = paired(gaps, [np.arange(len(gap)) for (gap,) in gaps], how=how, correction="holm")
    return [
        Difference(
            *(model, "t2i", name, one.difference, one.low, one.high, one.p, one.p_t, one.corrected),
            better=None if one.difference == 0 else one.difference > 0,
        )
        for (model, name), one in zip(pairs, tests, strict=True)
    ]


def setting_numbers(
    cells: Mapping[str, list[Cell]], judged: Judged, test: Catalogue, how: Bootstrap
) -> dict[str, Any]:
    """Return everything that is printed of one setting, JSON-able."""
    base, tree, relevant = baseline_of([*cells]), test.tree, judged.truth.t2i.counts
    names = dict.fromkeys((*CATEGORY_MEASURES, *LEADERBOARD))
    values = {
        model: {name: [one.result.per_query["t2i"][name] for one in of] for name in names}
        for model, of in cells.items()
    }
    differences = compare_models(values, base, how)
    intervals = f"{100 * how.confidence:g} % intervals from {how.samples:,} resamples of categories; "
    swaps = f"p of 10,000 random swaps per category, {correction_text('holm', len(differences))}"
    comparison = f"differences to {base}; {intervals if how.samples else ''}{swaps}, seed {how.seed}"
    line = f"{len(judged.nodes):,} categories ask {len(judged.products):,} products, "
    line += f"{int(relevant.min()):,}–{int(relevant.max()):,} relevant ones each"
    if judged.without_category:
        line += f"; {judged.without_category:,} products without a category are no candidates"
    depth = tree.depth[judged.nodes]
    seen = {model: [one.seen for one in of if one.seen is not None] for model, of in cells.items()}
    known = [mask for masks in seen.values() for mask in masks]
    unseen = np.flatnonzero(~np.any(known, axis=0)).tolist() if known else []  # by no training of any seed
    means = {model: np.mean(of["mAP@10"], axis=0) for model, of in values.items()}
    return {
        "line": line,
        "categories": len(judged.nodes),
        "products": len(judged.products),
        "table": [_row(model, of, values[model], how) for model, of in cells.items()],
        "baseline": base if differences else None,
        "comparison": comparison if differences else None,
        "differences": [{**asdict(one), "verdict": one.verdict} for one in differences],
        "levels": {model: _groups(values[model], [depth] * len(of)) for model, of in cells.items()},
        "seen": {model: _groups(values[model], masks) for model, masks in seen.items()},
        "errors": {model: _errors(tree, of) for model, of in cells.items()},
        "siblings": {
            model: confused_siblings(
                tree, np.tile(judged.labels, len(of)), np.concatenate([one.guess for one in of])
            )
            for model, of in cells.items()
        },
        "examples": {model: _examples(test, of[0], relevant) for model, of in cells.items()},
        "unseen": [
            {
                "category": list(tree.paths[judged.nodes[row]]),
                "relevant": int(relevant[row]),
                "mAP@10": {model: float(mean[row]) for model, mean in means.items()},
            }
            for row in unseen
        ],
    }


def _row(
    model: str, cells: Sequence[Cell], values: Mapping[str, Sequence[np.ndarray]], how: Bootstrap
) -> dict[str, Any]:
    table = np.stack([np.mean(of, axis=0) for of in values.values()], axis=1)
    ends = dict(zip(values, (resampled_sums(table, how) / len(table)).T, strict=True))

    def numbers(name: str, way: Direction = "t2i") -> dict[str, Any]:
        scores = [one.result.score(name, way) for one in cells]
        spread = Spread(tuple(one.value for one in scores))
        low, high = (interval(ends[name], how.confidence) if way == "t2i" else None) or (None, None)
        entry = {"mean": spread.mean, "sd": spread.sd, "values": list(spread.values)}
        return entry | {"chance": scores[0].chance, "low": low, "high": high}

    each = {name: numbers(name) for name in values} | {
        name: numbers(name, "i2t") for name in PRODUCT_MEASURES
    }
    return {"model": model, "label": _LABELS.get(model, model.upper()), "values": each}


def _groups(values: Mapping[str, Sequence[np.ndarray]], groups: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """Return the measures of each group of categories; ``groups`` are (q,) per seed."""
    found = []
    for group in np.unique(groups).tolist() if groups else ():
        masks = [one == group for one in groups]
        measures = {}
        for name in CATEGORY_MEASURES:
            parts = [of[mask] for of, mask in zip(values[name], masks, strict=True) if mask.any()]
            spread = Spread(tuple(float(part.mean()) for part in parts))
            measures[name] = {"mean": spread.mean, "sd": spread.sd}
        sizes = float(np.mean([mask.sum() for mask in masks]))
        found.append({"group": int(group), "categories": sizes, "values": measures})
    return found


Kinship = Literal["same", "ancestor", "descendant", "sibling", "same tree", "other tree"]
KINSHIPS: tuple[Kinship, ...] = get_args(Kinship)
"""Relations of the category that was found to the query; ``same tree`` is any further kin. Roots are no siblings."""


def kinship(tree: CategoryTree, queries: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return (n,) int64 numbers of :data:`KINSHIPS`: the relation of ``found`` to ``queries``, both (n,) nodes."""
    shared = tree.common(queries, found)
    conditions = {
        "same": queries == found,
        "other tree": shared == 0,
        "ancestor": shared == tree.depth[found],
        "descendant": shared == tree.depth[queries],
        "sibling": (tree.parent[queries] == tree.parent[found]) & (tree.parent[queries] >= 0),
    }
    numbers = [KINSHIPS.index(name) for name in conditions]
    return np.select([*conditions.values()], numbers, KINSHIPS.index("same tree")).astype(np.int64)


def count_errors(
    tree: CategoryTree, queries: np.ndarray, found: np.ndarray, right: np.ndarray | None = None
) -> dict[str, Any]:
    """Count how the first products of query categories go wrong (thesis Table 7.2, Figure 7.2).

    ``found`` is the node c_p of each query's first product, -1 for none. Without ``right`` a product is right where c_p
    is the query c, as in the thesis; by paths it may be although its own category is another. ``kinds`` counts by
    kinship, ``depths``, in the same tree, by depth(c_p) - depth(c), ``distances`` by edges, roots joined.
    """
    is_right = queries == found if right is None else right
    wrong = ~is_right & (found >= 0)
    c, c_p = queries[wrong], found[wrong]
    same = tree.root[c] == tree.root[c_p]
    depths, distances, kinds = (
        dict(sorted(Counter(values.tolist()).items()))
        for values in ((tree.depth[c_p] - tree.depth[c])[same], tree.distance(c, c_p), kinship(tree, c, c_p))
    )
    return {
        "asked": len(queries),
        "right": int(is_right.sum()),
        "nothing": int((found < 0).sum()),
        "wrong": len(c),
        "same_tree": int(same.sum()),
        "other_tree": int((~same).sum()),
        "same_tree_share": float(same.mean()) if len(c) else None,
        "depths": depths,
        "distances": distances,
        "kinds": {KINSHIPS[kind]: count for kind, count in kinds.items()},
    }


def _errors(tree: CategoryTree, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return counts of first products of another category, summed over seeds."""
    nodes, found, right = (
        np.concatenate([getattr(one, name) for one in cells]) for name in ("nodes", "found", "right")
    )
    errors: dict[str, Any] = {"runs": len(cells), "all": count_errors(tree, nodes, found, right)}
    for name, is_seen in (("seen", True), ("unseen", False)):
        masks = [one.seen == is_seen for one in cells if one.seen is not None]
        of = np.concatenate(masks) if masks else None
        errors[name] = None if of is None else count_errors(tree, nodes[of], found[of], right[of])
    return errors


def confused_siblings(tree: CategoryTree, truth: np.ndarray, guess: np.ndarray) -> list[dict[str, Any]]:
    """Return pairs of siblings that products are taken for each other's, those most confused first.

    ``truth`` are the (n,) nodes of products, ``guess`` those that they were taken for, -1 for none.
    """
    size, parent = np.bincount(truth, minlength=len(tree)), tree.parent
    kin = (guess >= 0) & (truth != guess) & (parent[truth] == parent[guess]) & (parent[truth] >= 0)
    counts = Counter(zip(truth[kin].tolist(), guess[kin].tolist(), strict=True))
    found: list[dict[str, Any]] = []
    for left, right in sorted({(min(pair), max(pair)) for pair in counts}):
        there, back = counts[left, right], counts[right, left]
        one: dict[str, Any] = {"left": list(tree.paths[left]), "right": list(tree.paths[right])}
        one |= {"left_as_right": there, "right_as_left": back, "confused": there + back}
        found.append(one | {"products": int(size[left] + size[right])})
    return sorted(found, key=lambda one: (-one["confused"], one["products"]))[:_SIBLINGS]


def choose_examples(
    tree: CategoryTree, queries: np.ndarray, found: np.ndarray, right: np.ndarray, score: np.ndarray
) -> dict[bool, np.ndarray]:
    """Return queries whose first product is right, and is not; the surest first, nothing random.

    Right ones come one per tree in turn, wrong ones one per kind of error, so that no rare kind is hidden; another
    tree is the last kind of a turn.
    """
    chosen = {}
    for is_right in (True, False):
        rows = np.flatnonzero((found >= 0) & (right == is_right))
        rows = rows[np.argsort(-score[rows], kind="stable")]
        groups = tree.root[queries[rows]] if is_right else kinship(tree, queries[rows], found[rows])
        turns = np.array([int((groups[:place] == group).sum()) for place, group in enumerate(groups)])
        is_last = (groups == KINSHIPS.index("other tree")) & (not is_right)
        chosen[is_right] = rows[np.lexsort((is_last, turns))]
    return chosen


def _examples(test: Catalogue, cell: Cell, relevant: np.ndarray) -> list[dict[str, Any]]:
    paths, kinds = test.tree.paths, kinship(test.tree, cell.nodes, np.maximum(cell.found, 0))
    chosen = choose_examples(test.tree, cell.nodes, cell.found, cell.right, cell.score)
    examples = []
    for is_right, row in ((is_right, row) for is_right, rows in chosen.items() for row in rows[:_EXAMPLES]):
        product = int(cell.first[row])
        one = {"right": is_right, "row": product, "product": test.ids[product], "title": test.titles[product]}
        one |= {"category": list(paths[cell.nodes[row]]), "found": list(paths[cell.found[row]])}
        one |= {"kind": KINSHIPS[kinds[row]], "score": float(cell.score[row]), "relevant": int(relevant[row])}
        examples.append(one)
    return examples


def setting_name(setting: str) -> str:
    """Return a setting's name as thesis Table 7.1 heads its parts."""
    return "All categories" if setting == "all" else f"{setting.replace('-', ' ').capitalize()} category"


def short_path(path: Sequence[str]) -> str:
    """Return the most general category and the two most specific ones."""
    return " › ".join(path if len(path) <= 3 else [path[0], "…", *path[-2:]])


def percent(share: float | None, note: str = "", shade: float = 0.0, colour: str = "blue") -> TableCell:
    """Return a share as a cell, in per cent."""
    text = "–" if share is None else f"{100 * share:.1f}"
    return TableCell(text, note, shade, colour, value=share)


def count_cell(value: float) -> TableCell:
    return TableCell.number(value, 0 if value == int(value) else 1)


def measure_tables(setting: str, numbers: Numbers) -> list[Table]:
    """Return thesis Table 7.1, intervals of all its measures, and the measures of Marqo's e-commerce leaderboards."""
    names, name = [one for one in CATEGORY_MEASURES if "hits" not in one], setting_name(setting)
    after = f"{numbers['line']}; per cent, ± over seeds of training; * best"
    if numbers["comparison"]:
        after += f"; ▲ better, ▼ worse than {numbers['baseline']}: {numbers['comparison']}"
    rest = "mAP@k divides by min(k, relevant products), mAP-hits@k by those among the first k."
    marqo = "Per cent; mAP over the whole gallery, MRR of the first relevant product, as Marqo's leaderboards print."
    caption = f"{name}: all measures with 95 % intervals over categories"
    return [
        _scores(
            name, numbers, [*names, *PRODUCT_MEASURES], after=f"{after}; R@1: the right category of a product"
        ),
        _scores(caption, numbers, CATEGORY_MEASURES, intervals=True, after=rest, folded=True),
        _scores(f"{name}: leaderboard measures", numbers, LEADERBOARD, after=marqo),
    ]


def _scores(
    caption: str, numbers: Numbers, columns: Sequence[str], intervals: bool = False, **more: Any
) -> Table:
    """Return a row per model and one of chance, with spreads over seeds or intervals; the best is marked."""
    verdicts = {(one["run"], one["measure"]): one["verdict"] for one in numbers["differences"]}
    lines = [[TableCell(row["label"])] for row in numbers["table"]]
    chance = [TableCell("chance")]
    for name in columns:
        values = [row["values"][name] for row in numbers["table"]]
        best = max(one["mean"] for one in values)
        chance.append(percent(values[0]["chance"]))
        for cells, row, one in zip(lines, numbers["table"], values, strict=True):
            strong, mark = one["mean"] == best > 0, _MARKS.get(verdicts.get((row["model"], name), ""), "")
            note = "" if one["sd"] is None else f"±{100 * one['sd']:.1f}"
            if intervals:
                note = "" if one["low"] is None else f"{100 * one['low']:.1f}–{100 * one['high']:.1f}"
            text = f"{100 * one['mean']:.1f}{' *' if strong else ''}{mark}"
            cells.append(TableCell(text, note, strong=strong, value=one["mean"]))
    return Table(caption, ("Model", *columns), [*lines, chance], **more)


def _each(settings: Mapping[str, Numbers], models: Iterable[str]) -> list[tuple[str, TableCell, Numbers]]:
    """Return each model in each setting with the head of its row."""
    labels = {row["model"]: row["label"] for one in settings.values() for row in one["table"]}
    each = [(model, setting) for model in models for setting in settings]
    return [
        (model, TableCell(labels[model], setting_name(setting)), settings[setting]) for model, setting in each
    ]


def group_table(
    part: str, caption: str, settings: Mapping[str, Numbers], models: Sequence[str], folded: bool
) -> Table:
    """Return the measures by level of the tree, or of categories that training saw and others (Table 7.3)."""
    rows = []
    for model, head, numbers in _each(settings, models):
        for one in numbers[part][model]:
            values = (percent(one["values"][name]["mean"]) for name in CATEGORY_MEASURES)
            name = f"level {one['group']}" if part == "levels" else ("unseen", "seen")[one["group"]]
            text = f"{head.text}, {name}"
            rows.append([TableCell(text, head.note), count_cell(round(one["categories"])), *values])
    heads = ("Model", "categories", *CATEGORY_MEASURES)
    return Table(caption, heads, rows, after="Per cent; means over seeds of training.", folded=folded)


def unseen_table(setting: str, numbers: Numbers) -> Table:
    """Return the query categories that training never saw."""
    rows = []
    for one in numbers["unseen"]:
        values = map(percent, one["mAP@10"].values())
        head = TableCell(short_path(one["category"]), words=True)
        rows.append([head, count_cell(one["relevant"]), *values])
    heads = ("category", "products", *(row["label"] for row in numbers["table"]))
    after = "mAP@10 in per cent, the mean over seeds; no training of any seed saw these categories."
    return Table(f"Unseen categories: {setting_name(setting).lower()}", heads, rows, after=after, folded=True)


def error_table(settings: Mapping[str, Numbers], models: Sequence[str], folded: bool = False) -> Table:
    """Return thesis Table 7.2, with the relation of the first product's category to the query."""
    rows = []
    for model, head, numbers in _each(settings, models):
        counts, runs = numbers["errors"][model]["all"], numbers["errors"][model]["runs"]
        values = [counts[name] for name in _ERRORS] + [counts["kinds"].get(kind, 0) for kind in _KINDS]
        rows.append([head, *(count_cell(value / runs) for value in values)])
    heads = ("Model", *_ERRORS.values(), *_KINDS.values())
    groups = (("", 4), ("wrong", 2), ("in the same tree: found is", 4))
    after = "Query categories by their first product; means over seeds of training."
    caption = "First products of another category"
    return Table(caption, heads, rows, groups=groups, after=after, folded=folded)


def sibling_table(setting: str, numbers: Numbers, model: str) -> Table:
    """Return the siblings that products are taken for each other's, those most confused first."""
    runs, rows = numbers["errors"][model]["runs"], []
    for one in numbers["siblings"][model]:
        share = one["confused"] / one["products"]
        counts = (count_cell(one[name] / runs) for name in ("left_as_right", "right_as_left", "products"))
        head = TableCell(f"{one['left'][-1]} / {one['right'][-1]}", short_path(one["left"][:-1]))
        rows.append([head, *counts, percent(share, "", share, "orange")])
    heads = ("A / B", "A taken for B", "B taken for A", "products", "% confused")
    after = "Each test product is a query for its category among the query categories; means over seeds of training."
    caption = f"Siblings taken for each other by {model}: {setting_name(setting).lower()}"
    return Table(caption, heads, rows, after=after)


def error_chart(settings: Mapping[str, Numbers], model: str, name: str) -> Chart:
    """Return how far off the errors of a model are (thesis Figure 7.2)."""
    (title, x), lines = _OFFSETS[name], []
    for setting, numbers in settings.items():
        errors = numbers["errors"][model]
        if found := {int(key): value for key, value in errors["all"][name].items()}:
            whole, span = sum(found.values()), range(min(found), max(found) + 1)
            label = f"{setting_name(setting)} ({whole / errors['runs']:,.3g})"
            lines.append(Series(label, [100 * found.get(key, 0) / whole for key in span], [*span]))
    after = "Different trees are joined above their roots. In brackets: errors per seed of training."
    return Chart(f"{model.upper()}: {title}", lines, x, "% of errors", after=after)


def evaluation_sections(
    settings: Mapping[str, Numbers], base: str, models: Sequence[str]
) -> dict[str, list[Table | Chart]]:
    """Return tables and charts by what they answer; tables of all models but the baseline are folded."""
    each, rest = settings.items(), [model for model in models if model != base]
    parts = [([base], False), *([(rest, True)] if rest else [])]
    groups = {
        part: [table for of in parts if (table := group_table(part, caption, settings, *of)).rows]
        for part, caption in {"levels": "Levels of the tree", "seen": "Categories that training saw"}.items()
    }
    charts = [chart for name in _OFFSETS if (chart := error_chart(settings, base, name)).series]
    return {
        "Which model finds products": [table for one in each for table in measure_tables(*one)],
        "Levels of the tree": [*groups["levels"]],
        "Seen and unseen categories": [*groups["seen"]],
        "Unseen categories": [unseen_table(*one) for one in each if one[1]["unseen"]],
        "Errors of the first product": [*(error_table(settings, *of) for of in parts), *charts],
        "Siblings": [sibling_table(name, one, base) for name, one in each if one["siblings"][base]],
    }
