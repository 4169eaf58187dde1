"""Tables beside those of thesis chapter 7: intervals, denominators, levels of the tree, errors and unseen categories of
every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.core.chart import Chart, Series
from diptych.core.table import Table
from diptych.studies.cti_checks import DIFFERENT, SAME
from diptych.studies.cti_rows import MODELS, SETTINGS, evaluation_of, row_name
from diptych.studies.figures import series
from diptych.studies.verdict import Evidence

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation


_MEASURE = "mAP@10"
_KINDS = ("ancestor", "descendant", "sibling", "same tree", "other tree")
_NONE = "–"


def result_tables(evidence: Evidence) -> list[Table]:
    """Beside table 7.1: intervals over categories, mAP by both denominators, numbers level by level."""
    found = evaluation_of(evidence)
    if found is None:
        return []
    return [*_asked(found), *_intervals(found), *_denominators(found), *_levels(found)]


def error_tables(evidence: Evidence) -> list[Table]:
    """Beside table 7.2 and figure 7.2: errors of every model that was evaluated, and confused siblings."""
    found = evaluation_of(evidence)
    if found is None:
        return []
    return [*_asked(found), *_errors(found), *_siblings(found)]


def seen_tables(evidence: Evidence) -> list[Table]:
    """Beside table 7.3: seen and unseen categories of every model that was evaluated."""
    found = evaluation_of(evidence)
    if found is None:
        return []
    return [*_asked(found), *_seen(found)]


def _asked(found: ModelsEvaluation) -> list[Table]:
    rows = tuple((SETTINGS[name], found.setting_line(name)) for name in _settings(found))
    note = "A category asks when a test product has it in the setting."
    return [Table.of("What is asked in each setting", note, ("setting", "test"), rows)]


def _intervals(found: ModelsEvaluation) -> list[Table]:
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
        Table.of("Intervals, chance, and products that ask for their category", note, header, tuple(rows))
    ]


def _denominators(found: ModelsEvaluation) -> list[Table]:
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
    return [Table.of("What mAP@k is divided by", note, header, tuple(rows))]


def _levels(found: ModelsEvaluation) -> list[Table]:
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
    return [Table.of("Level by level", note, header, tuple(rows))]


def _errors(found: ModelsEvaluation) -> list[Table]:
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
    return [Table.of("Errors of every model", note, header, tuple(rows))]


def _siblings(found: ModelsEvaluation) -> list[Table]:
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
    return [Table.of("Siblings that are confused most", note, header, tuple(rows))]


def _seen(found: ModelsEvaluation) -> list[Table]:
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
    return [Table.of("Seen and unseen categories, every model", note, header, tuple(rows))]


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


@dataclass(frozen=True)
class Charts:
    """Charts of what was measured; nothing of what was not."""

    name: str
    title: str
    note: str
    charts: Callable[[Evidence], list[Chart]]

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[Chart]:
        """Return the charts; labels of rows are their settings'."""
        return self.charts(evidence)


def model_dots() -> Charts:
    """Table 7.1: a chart per setting, models one below the other."""

    def charts(evidence: Evidence) -> list[Chart]:
        drawn = []
        for setting, called in SETTINGS.items():
            each = {model: evidence.figure(row_name(model, setting), _MEASURE) for model in MODELS}
            found = {MODELS[model]: figure for model, figure in each.items() if figure is not None}
            if found:
                texts = [f"{figure.mean:.1f}" for figure in found.values()]
                bars = series("", list(found.values()), "bar", texts)
                drawn.append(
                    Chart(called.capitalize(), [bars], f"{_MEASURE} in %", "model", list(found), across=True)
                )
        return drawn

    return Charts(
        "models",
        "Models in three settings",
        f"{_MEASURE} in per cent, divided by min(10, relevant products), with standard deviations over seeds. "
        "The settings ask different questions: numbers of one are not those of another.",
        charts,
    )


def tree_bars() -> Charts:
    """Table 7.2: of each setting's errors, how many are in the tree of the target."""

    def charts(evidence: Evidence) -> list[Chart]:
        bars: dict[str, list[float | None]] = {}
        for name, called in SETTINGS.items():
            same, other = evidence.figure(name, SAME), evidence.figure(name, DIFFERENT)
            if same is not None and other is not None and same.mean + other.mean > 0:
                whole = same.mean + other.mean
                bars[called] = [100 * one.mean / whole for one in (same, other)]
        return _pairs("Errors by tree", bars, (SAME, DIFFERENT), "% of the errors")

    return Charts("trees", "Errors by tree", "Of the errors of each setting, the mean over seeds.", charts)


def seen_bars() -> Charts:
    """Table 7.3: seen and unseen categories, setting by setting."""

    def charts(evidence: Evidence) -> list[Chart]:
        kinds = ("seen", "unseen")
        bars = {}
        for setting, called in SETTINGS.items():
            both = [evidence.figure(row_name(kind, setting), _MEASURE) for kind in kinds]
            if any(both):
                bars[called] = [None if one is None else one.mean for one in both]
        return _pairs("Seen and unseen", bars, kinds, f"{_MEASURE} in %")

    return Charts(
        "seen",
        "Seen and unseen categories",
        f"{_MEASURE} of CLIP-ITA, the mean over seeds; a setting without unseen categories has one bar.",
        charts,
    )


def depth_bars() -> Charts:
    """Figure 7.2: d of errors in the same tree."""

    def charts(evidence: Evidence) -> list[Chart]:
        drawn = []
        for setting, called in SETTINGS.items():
            row = evidence.figures.get(setting, {})
            shares = {int(name[4:]): figure for name, figure in row.items() if name.startswith("d = ")}
            if shares:
                depths = sorted(shares)
                figures = [shares[depth] for depth in depths]
                texts = [f"{figure.mean:.0f}" if figure.mean else "" for figure in figures]
                bars = series("", figures, "bar", texts)
                drawn.append(
                    Chart(called.capitalize(), [bars], "d", "% of errors in the tree", list(map(str, depths)))
                )
        return drawn

    return Charts(
        "depths",
        "Figure 7.2: distance between the category that asked and that of a wrong first product",
        "d = depth(c_p) − depth(c), of CLIP-ITA's errors within one tree, in per cent of them: below 0 a more general "
        "category was found, above 0 a more specific one. The most general setting has none: two roots are never "
        "in one tree.",
        charts,
    )


def _pairs(
    title: str, bars: Mapping[str, Sequence[float | None]], kinds: Sequence[str], unit: str
) -> list[Chart]:
    """Two bars per setting; no chart without any."""
    drawn = []
    for kind, values in zip(kinds, zip(*bars.values(), strict=True), strict=False):
        texts = ["" if value is None else f"{value:.1f}" for value in values]
        drawn.append(Series(kind, values, mark="bar", texts=texts))
    return [Chart(title, drawn, "", unit, list(bars))] if drawn else []
