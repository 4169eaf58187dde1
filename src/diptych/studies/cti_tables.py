"""Tables beside those of thesis chapter 7: intervals, denominators, levels of the tree, errors and unseen categories of
every model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diptych.studies.cti_evidence import evaluation_of
from diptych.studies.cti_rows import MODELS, SETTINGS
from diptych.studies.evidence import Evidence
from diptych.studies.study import FurtherTable

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

_MEASURE = "mAP@10"
_KINDS = ("ancestor", "descendant", "sibling", "same tree", "other tree")
_NONE = "–"


def result_tables(evidence: Evidence) -> list[FurtherTable]:
    """Beside table 7.1: intervals over categories, mAP by both denominators, numbers level by level."""
    found = evaluation_of(evidence)
    if found is None:
        return []
    return [*_asked(found), *_intervals(found), *_denominators(found), *_levels(found)]


def error_tables(evidence: Evidence) -> list[FurtherTable]:
    """Beside table 7.2 and figure 7.2: errors of every model that was evaluated, and confused siblings."""
    found = evaluation_of(evidence)
    if found is None:
        return []
    return [*_asked(found), *_errors(found), *_siblings(found)]


def seen_tables(evidence: Evidence) -> list[FurtherTable]:
    """Beside table 7.3: seen and unseen categories of every model that was evaluated."""
    found = evaluation_of(evidence)
    if found is None:
        return []
    return [*_asked(found), *_seen(found)]


def _asked(found: ModelsEvaluation) -> list[FurtherTable]:
    rows = tuple((SETTINGS[name], found.setting_line(name)) for name in _settings(found))
    note = "A category asks when a test product has it in the setting."
    return [FurtherTable("What is asked in each setting", note, ("setting", "test"), rows)]


def _intervals(found: ModelsEvaluation) -> list[FurtherTable]:
    rows = []
    for setting in _settings(found):
        for row in _of_setting(found, setting)["table"]:
            values = row["values"]
            cells = [_interval(values[name]) for name in ("P@1", _MEASURE, "R-precision")]
            put = row["products"]["R@1"]["mean"]
            chance = f"{100 * values['P@1']['chance']:.2f}"
            rows.append((SETTINGS[setting], _label(row["model"]), *cells, chance, f"{100 * put:.1f}"))
    header = ("setting", "model", "P@1", _MEASURE, "R-precision", "P@1 by chance", "products put right")
    note = (
        "Per cent, with 95 % intervals over categories (of the mean over seeds). “Products put right” asks the other "
        "way: the share of test products whose own category is the first of all that ask."
    )
    return [
        FurtherTable("Intervals, chance, and products that ask for their category", note, header, tuple(rows))
    ]


def _denominators(found: ModelsEvaluation) -> list[FurtherTable]:
    rows = []
    for setting in _settings(found):
        for row in _of_setting(found, setting)["table"]:
            values = row["values"]
            names = ("P@5", "mAP@5", "mAP-hits@5", "P@10", "mAP@10", "mAP-hits@10")
            numbers = [f"{100 * values[name]['mean']:.2f}" for name in names]
            rows.append((SETTINGS[setting], _label(row["model"]), *numbers))
    header = ("setting", "model", "P@5", "mAP@5", "mAP-hits@5", "P@10", "mAP@10", "mAP-hits@10")
    note = (
        "mAP@k is divided by min(k, relevant products), mAP-hits@k by the relevant ones among the first k, as the "
        "printed numbers seem to be. The first is at most P@k where a category has k products and more."
    )
    return [FurtherTable("What mAP@k is divided by", note, header, tuple(rows))]


def _levels(found: ModelsEvaluation) -> list[FurtherTable]:
    if "all" not in found.settings:
        return []
    of_setting = _of_setting(found, "all")["levels"]
    depths = sorted({one["group"] for groups in of_setting.values() for one in groups})
    asked = {one["group"]: one["categories"] for one in next(iter(of_setting.values()))}
    rows = [("categories that ask", *(f"{asked.get(depth, 0):,.0f}" for depth in depths))]
    for model in _models(found):
        values = {one["group"]: one["values"][_MEASURE]["mean"] for one in of_setting[model]}
        rows.append((_label(model), *(f"{100 * values[d]:.2f}" if d in values else _NONE for d in depths)))
    note = (
        f"{_MEASURE} in per cent by the depth of the category that asks, in the setting of all categories; level 1 is "
        "the most general."
    )
    header = ("model", *(f"level {depth}" for depth in depths))
    return [FurtherTable("Level by level", note, header, tuple(rows))]


def _errors(found: ModelsEvaluation) -> list[FurtherTable]:
    rows = []
    for setting in _settings(found):
        for model in _models(found):
            of_model = _of_setting(found, setting)["errors"][model]
            counts, runs = of_model["all"], of_model["runs"]
            share = counts["same_tree_share"]
            kinds = [_count(counts["kinds"].get(kind, 0), runs) for kind in _KINDS]
            nothing = [_count(counts["nothing"], runs)]
            told = _NONE if share is None else f"{100 * share:.0f} %"
            rows.append(
                (SETTINGS[setting], _label(model), _count(counts["wrong"], runs), told, *kinds, *nothing)
            )
    header = ("setting", "model", "errors", "in the tree", *_KINDS, "nothing found")
    note = (
        "Categories whose first product has another category, by what that is to the one that asked; means over seeds. "
        "“Same tree” is farther kin; “in the tree” is table 7.2's first column, with ancestors, descendants "
        "and siblings."
    )
    return [FurtherTable("Errors of every model", note, header, tuple(rows))]


def _siblings(found: ModelsEvaluation) -> list[FurtherTable]:
    rows = []
    for setting in _settings(found):
        if setting == "most-general":
            continue
        for one in _of_setting(found, setting)["siblings"].get(found.baseline, [])[:5]:
            both = [" > ".join(one[side][-2:]) for side in ("left", "right")]
            rows.append((SETTINGS[setting], *both, str(one["confused"]), str(one["products"])))
    if not rows:
        return []
    note = f"Test products of one category for which {_label(found.baseline)} finds a sibling first; summed over seeds."
    header = ("setting", "category", "sibling", "confused", "products of both")
    return [FurtherTable("Siblings that are confused most", note, header, tuple(rows))]


def _seen(found: ModelsEvaluation) -> list[FurtherTable]:
    rows = []
    for setting in _settings(found):
        for model, groups in _of_setting(found, setting)["seen"].items():
            by_group = {one["group"]: one for one in groups}
            if model not in MODELS or not by_group:
                continue
            cells: list[str] = []
            for group in (1, 0):
                one = by_group.get(group)
                values = ("P@1", _MEASURE)
                cells += [_NONE] * 3 if one is None else [f"{one['categories']:,.0f}"]
                cells += (
                    [] if one is None else [f"{100 * one['values'][name]['mean']:.2f}" for name in values]
                )
            rows.append((SETTINGS[setting], _label(model), *cells))
    header = (
        "setting",
        "model",
        "seen",
        "P@1 seen",
        f"{_MEASURE} seen",
        "unseen",
        "P@1 unseen",
        f"{_MEASURE} unseen",
    )
    note = (
        "How many categories, and per cent. A model that is not trained has seen none of them: where unseen ones are "
        "harder for it too, they are harder categories, or have other numbers of products."
    )
    return [FurtherTable("Seen and unseen categories, every model", note, header, tuple(rows))]


# Small parts ----------------------------------------------------------------------------------------------


def _settings(found: ModelsEvaluation) -> list[str]:
    return [name for name in SETTINGS if name in found.settings]


def _models(found: ModelsEvaluation) -> list[str]:
    return [name for name in MODELS if name in found.models]


def _of_setting(found: ModelsEvaluation, setting: str) -> Any:
    return found.numbers["settings"][setting]


def _label(model: str) -> str:
    return MODELS.get(model, model)


def _interval(value: Any) -> str:
    mean = f"{100 * value['mean']:.2f}"
    if value["low"] is None:
        return mean
    return f"{mean} [{100 * value['low']:.1f}, {100 * value['high']:.1f}]"


def _count(count: int, runs: int) -> str:
    mean = count / runs
    return f"{mean:,.0f}" if mean == int(mean) else f"{mean:,.1f}"
