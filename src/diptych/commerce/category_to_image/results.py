"""The numbers of an evaluation, computed once from its units, and their tables and charts (thesis 7.4 to 7.6)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diptych.commerce.catalogue import Catalogue, Judged
from diptych.commerce.category_to_image.rankers import CATEGORY_MEASURES, LEADERBOARD, PRODUCT_MEASURES
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table
from diptych.evaluation.comparison import Difference, Spread
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums
from diptych.metrics.paired import correction_text, paired

_SIBLINGS = 10  # pairs that are kept
_MARKS = {"better": " ▲", "worse": " ▼", "": ""}
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
class ModelResult(Artifact, kind="category_cell", version=2, recreate="diptych categories evaluate DATA"):
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
    return "clip-ita" if "clip-ita" in models else models[-1]


def compare_models(values: Values, baseline: str, how: Bootstrap) -> list[Difference]:
    """Compare every model with a baseline by the thesis's measures, over categories, after averaging over seeds."""
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
    cells: Mapping[str, list[ModelResult]], judged: Judged, test: Catalogue, how: Bootstrap
) -> dict[str, Any]:
    """Return everything that is printed of one setting, JSON-able.

    ``scores`` are lines of a model and a group of categories, with the mean of every measure and its deviation over
    seeds; a group is a ``part``, ``all``, ``levels`` or ``seen``, and in these a level, or 0 for unseen and 1 for seen.
    """
    base, tree, relevant = baseline_of([*cells]), test.tree, judged.truth.t2i.counts
    names = dict.fromkeys((*CATEGORY_MEASURES, *LEADERBOARD))
    values = {
        model: {name: [one.result.per_query["t2i"][name] for one in of] for name in names}
        for model, of in cells.items()
    }
    differences = compare_models(values, base, how)
    line = f"{len(judged.nodes):,} categories, {len(judged.products):,} products, "
    line += f"{int(relevant.min()):,}–{int(relevant.max()):,} relevant to each"
    if judged.without_category:
        line += f"; {judged.without_category:,} products without a category are no candidates"
    depth, scores = tree.depth[judged.nodes], []
    for model, of in cells.items():
        seen = [one.seen for one in of if one.seen is not None]
        scores.append({"model": model, "part": "all", "values": _whole(of, values[model], how)})
        for part, groups in (("levels", [depth] * len(of)), ("seen", seen)):
            scores += [{"model": model, "part": part, **one} for one in _groups(values[model], groups)]
    known = [one.seen for of in cells.values() for one in of if one.seen is not None]
    unseen = np.flatnonzero(~np.any(known, axis=0)).tolist() if known else []  # by no training of any seed
    means = {model: np.mean(of["mAP@10"], axis=0) for model, of in values.items()}
    return {
        "line": line,
        "categories": len(judged.nodes),
        "products": len(judged.products),
        "scores": scores,
        "baseline": base,
        "differences": [{**asdict(one), "verdict": one.verdict} for one in differences],
        "tests": f"10,000 random swaps per category, {correction_text('holm', len(differences))}",
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


def _whole(cells: Sequence[ModelResult], values: Mapping[str, Any], how: Bootstrap) -> dict[str, Any]:
    table = np.stack([np.mean(of, axis=0) for of in values.values()], axis=1)
    ends = dict(zip(values, (resampled_sums(table, how) / len(table)).T, strict=True))
    found = {}
    for name in (*values, *PRODUCT_MEASURES):
        scores = [one.result.score(name, "t2i" if name in values else "i2t") for one in cells]
        spread = Spread(tuple(one.value for one in scores))
        low, high = interval(ends.get(name, ()), how.confidence) or (None, None)
        found[name] = {"mean": spread.mean, "sd": spread.sd, "values": list(spread.values)}
        found[name] |= {"chance": scores[0].chance, "low": low, "high": high}
    return found


def _groups(values: Mapping[str, Any], groups: Sequence[np.ndarray]) -> Iterator[dict[str, Any]]:
    """Yield the measures of each group of categories; ``groups`` are (q,) per seed."""
    for group in np.unique(groups).tolist() if groups else ():
        masks, measures = [one == group for one in groups], {}
        for name in CATEGORY_MEASURES:
            parts = [of[mask] for of, mask in zip(values[name], masks, strict=True) if mask.any()]
            spread = Spread(tuple(float(part.mean()) for part in parts))
            measures[name] = {"mean": spread.mean, "sd": spread.sd}
        yield {"group": int(group), "categories": float(np.sum(masks) / len(masks)), "values": measures}


def kinship(tree: CategoryTree, queries: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return (n,) texts: the relation of ``found`` to ``queries``, both (n,) nodes; roots are no siblings.

    ``same``, ``ancestor``, ``descendant``, ``sibling``, ``same tree`` for any further kin, ``other tree``.
    """
    shared = tree.common(queries, found)
    conditions = {
        "same": queries == found,
        "other tree": shared == 0,
        "ancestor": shared == tree.depth[found],
        "descendant": shared == tree.depth[queries],
        "sibling": (tree.parent[queries] == tree.parent[found]) & (tree.parent[queries] >= 0),
    }
    return np.select([*conditions.values()], [*conditions], "same tree")


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
    same, kinds = tree.root[c] == tree.root[c_p], kinship(tree, c, c_p)
    depths = (tree.depth[c_p] - tree.depth[c])[same]
    counted = {"depths": depths, "distances": tree.distance(c, c_p), "kinds": kinds}
    return {
        "asked": len(queries),
        "right": int(is_right.sum()),
        "nothing": int((found < 0).sum()),
        "wrong": len(c),
        "same_tree": int(same.sum()),
        "other_tree": int((~same).sum()),
        "same_tree_share": float(same.mean()) if len(c) else None,
        **{name: dict(sorted(Counter(values.tolist()).items())) for name, values in counted.items()},
    }


def _errors(tree: CategoryTree, cells: Sequence[ModelResult]) -> dict[str, Any]:
    nodes, found, right = (
        np.concatenate([getattr(one, name) for one in cells]) for name in ("nodes", "found", "right")
    )
    masks = [one.seen for one in cells if one.seen is not None]
    seen = np.concatenate(masks) if masks else None
    parts = {"all": slice(None), "seen": seen, "unseen": None if seen is None else ~seen}
    counts = {
        name: None if of is None else count_errors(tree, nodes[of], found[of], right[of])
        for name, of in parts.items()
    }
    return {"runs": len(cells), **counts}


def confused_siblings(tree: CategoryTree, truth: np.ndarray, guess: np.ndarray) -> list[dict[str, Any]]:
    """Return pairs of siblings that products are taken for each other's, most confused first; guess -1: none."""
    kin = (guess >= 0) & (kinship(tree, truth, guess) == "sibling")
    counts = Counter(zip(truth[kin].tolist(), guess[kin].tolist(), strict=True))
    size = np.bincount(truth, minlength=len(tree))
    found = []
    for left, right in sorted({(min(pair), max(pair)) for pair in counts}):
        there, back = counts[left, right], counts[right, left]
        one: dict[str, Any] = {"left": list(tree.paths[left]), "right": list(tree.paths[right])}
        one |= {"left_as_right": there, "right_as_left": back, "confused": there + back}
        found.append(one | {"products": int(size[left] + size[right])})
    return sorted(found, key=lambda one: (-one["confused"], one["products"]))[:_SIBLINGS]


def choose_examples(
    tree: CategoryTree, queries: np.ndarray, found: np.ndarray, right: np.ndarray, score: np.ndarray
) -> list[int]:
    """Return the surest query of each tree whose first product is right, and of each kind of error."""
    chosen: dict[str, int] = {}
    kinds = np.where(right, tree.root[queries].astype(str), kinship(tree, queries, found))
    for row in np.argsort(-score, kind="stable").tolist():
        if found[row] >= 0:
            chosen.setdefault(kinds[row], row)
    return list(chosen.values())


def _examples(test: Catalogue, cell: ModelResult, relevant: np.ndarray) -> list[dict[str, Any]]:
    paths, examples = test.tree.paths, []
    for row in choose_examples(test.tree, cell.nodes, cell.found, cell.right, cell.score):
        first, category, found = int(cell.first[row]), cell.nodes[[row]], cell.found[[row]]
        example = {"right": bool(cell.right[row]), "row": first, "product": test.ids[first]}
        example |= {"title": test.titles[first], "relevant": int(relevant[row])}
        example |= {"category": list(paths[category[0]]), "found": list(paths[found[0]])}
        kind = str(kinship(test.tree, category, found)[0])
        examples.append(example | {"kind": kind, "score": float(cell.score[row])})
    return examples


def setting_name(setting: str) -> str:
    """Return a setting's name as thesis Table 7.1 heads its parts."""
    return "All categories" if setting == "all" else f"{setting.replace('-', ' ').capitalize()} category"


def model_name(model: str) -> str:
    return {"sentence": "sentence encoder", "mixed": "mixed"}.get(model, model.upper())


def short_path(path: Sequence[str]) -> str:
    return " › ".join(path if len(path) <= 3 else [path[0], "…", *path[-2:]])


def percent(share: float | None, note: str = "", **look: Any) -> Cell:
    return Cell("–" if share is None else f"{100 * share:.1f}", note, value=share, **look)


def count_cell(value: float) -> Cell:
    return Cell.number(value, 0 if value == int(value) else 1)


def scores_of(numbers: Numbers, part: str = "all") -> list[dict[str, Any]]:
    return [one for one in numbers["scores"] if one["part"] == part]


def measure_tables(setting: str, numbers: Numbers) -> list[Table]:
    """Return thesis Table 7.1, intervals of all its measures, and the measures of Marqo's e-commerce leaderboards."""
    name, lines = setting_name(setting), scores_of(numbers)
    verdicts = {(one["run"], one["measure"]): one["verdict"] for one in numbers["differences"]}

    def table(caption: str, columns: Sequence[str], after: str, intervals: bool = False) -> Table:
        best = {column: max(one["values"][column]["mean"] for one in lines) for column in columns}
        rows = []
        for line in lines:
            rows.append([Cell(model_name(line["model"]))])
            for column in columns:
                mean, sd, low, high = (line["values"][column][key] for key in ("mean", "sd", "low", "high"))
                note = "" if sd is None else f"±{100 * sd:.1f}"
                if intervals:
                    note = "" if low is None else f"{100 * low:.1f}–{100 * high:.1f}"
                strong, mark = mean == best[column] > 0, _MARKS[verdicts.get((line["model"], column), "")]
                text = f"{100 * mean:.1f}{' *' if strong else ''}{mark}"
                rows[-1].append(Cell(text, note, strong=strong, value=mean))
        chance = (percent(lines[0]["values"][column]["chance"]) for column in columns)
        rows.append([Cell("chance"), *chance])
        return Table(caption, ("Model", *columns), rows, after=after, folded=intervals)

    after = f"{numbers['line']}; per cent, ± over seeds; * best; R@1: the right category of a product"
    if verdicts:
        after += f"; ▲ better, ▼ worse than {numbers['baseline']}: {numbers['tests']}"
    names = [one for one in CATEGORY_MEASURES if "hits" not in one]
    rest = "mAP@k divides by min(k, relevant products), mAP-hits@k by those among the first k."
    marqo = "mAP over the whole gallery, MRR of the first relevant product, as Marqo's leaderboards print."
    return [
        table(name, [*names, *PRODUCT_MEASURES], after),
        table(f"{name}: 95 % intervals over categories", CATEGORY_MEASURES, rest, intervals=True),
        table(f"{name}: leaderboard measures", LEADERBOARD, marqo),
    ]


def _each(settings: Mapping[str, Numbers], models: Iterable[str]) -> Iterator[tuple[str, str, Numbers]]:
    for model in models:
        for setting, numbers in settings.items():
            yield model, setting_name(setting), numbers


def group_table(
    caption: str, part: str, settings: Mapping[str, Numbers], models: Iterable[str], folded: bool
) -> Table:
    """Return the measures by level of the tree, or of categories that training saw and others (Table 7.3)."""
    rows = []
    for model, setting, numbers in _each(settings, models):
        for one in (line for line in scores_of(numbers, part) if line["model"] == model):
            group = f"level {one['group']}" if part == "levels" else ("unseen", "seen")[one["group"]]
            values = (percent(one["values"][name]["mean"]) for name in CATEGORY_MEASURES)
            head = Cell(f"{model_name(model)}, {group}", setting)
            rows.append([head, count_cell(round(one["categories"])), *values])
    heads = ("Model", "categories", *CATEGORY_MEASURES)
    return Table(caption, heads, rows, after="Per cent; means over seeds of training.", folded=folded)


def unseen_table(setting: str, numbers: Numbers) -> Table:
    """Return the query categories that training never saw."""
    rows = []
    for one in numbers["unseen"]:
        head = Cell(short_path(one["category"]), words=True)
        rows.append([head, count_cell(one["relevant"]), *map(percent, one["mAP@10"].values())])
    heads = ("category", "products", *(model_name(line["model"]) for line in scores_of(numbers)))
    after = "mAP@10 in per cent, the mean over seeds; no training of any seed saw these categories."
    return Table(f"Unseen categories: {setting_name(setting).lower()}", heads, rows, after=after, folded=True)


def error_table(settings: Mapping[str, Numbers], models: Iterable[str], folded: bool = False) -> Table:
    """Return thesis Table 7.2, with the relation of the first product's category to the query."""
    rows = []
    for model, setting, numbers in _each(settings, models):
        counts, runs = numbers["errors"][model]["all"], numbers["errors"][model]["runs"]
        values = [counts[name] for name in _ERRORS] + [counts["kinds"].get(kind, 0) for kind in _KINDS]
        rows.append([Cell(model_name(model), setting), *(count_cell(value / runs) for value in values)])
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
        head = Cell(f"{one['left'][-1]} / {one['right'][-1]}", short_path(one["left"][:-1]))
        rows.append([head, *counts, percent(share, shade=share, colour="orange")])
    heads = ("A / B", "A taken for B", "B taken for A", "products", "% confused")
    after = "Each test product is a query for its category; means over seeds of training."
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
    levels, seen = (
        [table for of in parts if (table := group_table(caption, part, settings, *of)).rows]
        for part, caption in (("levels", "Levels of the tree"), ("seen", "Categories that training saw"))
    )
    charts = [chart for name in _OFFSETS if (chart := error_chart(settings, base, name)).series]
    return {
        "Which model finds products": [table for one in each for table in measure_tables(*one)],
        "Levels of the tree": [*levels],
        "Seen and unseen categories": [*seen],
        "Unseen categories": [unseen_table(*one) for one in each if one[1]["unseen"]],
        "Errors of the first product": [*(error_table(settings, *of) for of in parts), *charts],
        "Siblings": [sibling_table(name, one, base) for name, one in each if one["siblings"][base]],
    }
