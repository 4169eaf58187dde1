"""Tables beside those of thesis chapter 7: intervals, denominators, levels of the tree, errors and unseen categories of
every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.core.table import Table
from diptych.studies.cti_checks import DIFFERENT, SAME
from diptych.studies.cti_rows import FULL, MODELS, SETTINGS, evaluation_of, row_name
from diptych.studies.verdict import Evidence, Figure

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


_WIDE = 0.38
_GREY = "#8a929c"


@dataclass(frozen=True)
class Panels:
    """Panels of what was measured; nothing of what was not."""

    name: str
    title: str
    note: str
    panels: Callable[[Evidence], list[str]]
    wide: bool = False

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """The panels; labels of rows are their settings'."""
        return self.panels(evidence)


def model_dots() -> Panels:
    """Table 7.1: a panel per setting, models one below the other, all with the same axis."""

    def panels(evidence: Evidence) -> list[str]:
        found = {
            setting: {
                model: figure
                for model in MODELS
                if (figure := evidence.figure(row_name(model, setting), _MEASURE)) is not None
            }
            for setting in SETTINGS
        }
        most = max((figure.mean for one in found.values() for figure in one.values()), default=0.0)
        return [_dots(setting, one, most) for setting, one in found.items() if one]

    return Panels(
        "models",
        "Models in three settings",
        f"{_MEASURE} in per cent, divided by min(10, relevant products), with standard deviations over seeds. CLIP-ITA "
        "is orange. The settings ask different questions: numbers of one are not those of another.",
        panels,
    )


def _dots(setting: str, found: Mapping[str, Figure], most: float) -> str:
    from diptych.report.drawing import BLUE, INK, ORANGE, draw

    with draw(f"models-{setting}", size=(4.4, 0.9 + 0.3 * len(found))) as drawing:
        axes = drawing.axes
        for place, (model, figure) in enumerate(found.items()):
            axes.barh(
                -place,
                figure.mean,
                0.62,
                xerr=figure.sd or None,
                color=ORANGE if model == FULL else BLUE,
                error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 1.5},
            )
            behind = figure.mean + (figure.sd or 0.0) + 0.015 * most
            axes.text(behind, -place, f"{figure.mean:.1f}", va="center", fontsize=9)
        axes.set_yticks([-place for place in range(len(found))], [MODELS[model] for model in found])
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1.16 * most or 1)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.set(title=SETTINGS[setting].capitalize(), xlabel=f"{_MEASURE} in %")
        said = "; ".join(f"{MODELS[model]} {figure.mean:.1f}" for model, figure in found.items())
        drawing.summary = f"{_MEASURE}, {SETTINGS[setting]}: {said}."
    return drawing.svg


def tree_bars() -> Panels:
    """Table 7.2: of each setting's errors, how many are in the tree of the target."""

    def panels(evidence: Evidence) -> list[str]:
        bars = {}
        for name, called in SETTINGS.items():
            same, other = evidence.figure(name, SAME), evidence.figure(name, DIFFERENT)
            if same is not None and other is not None and same.mean + other.mean > 0:
                whole = same.mean + other.mean
                bars[called] = [100 * one.mean / whole for one in (same, other)]
        return [_pairs("trees", "Errors by tree", bars, (SAME, DIFFERENT), "% of the errors")] if bars else []

    return Panels(
        "trees",
        "Errors by tree",
        "Of the errors of each setting, the mean over seeds.",
        panels,
        wide=True,
    )


def seen_bars() -> Panels:
    """Table 7.3: seen and unseen categories, setting by setting."""

    def panels(evidence: Evidence) -> list[str]:
        kinds = ("seen", "unseen")
        bars = {}
        for setting, called in SETTINGS.items():
            both = [evidence.figure(row_name(kind, setting), _MEASURE) for kind in kinds]
            if any(both):
                bars[called] = [None if one is None else one.mean for one in both]
        return [_pairs("seen", "Seen and unseen", bars, kinds, f"{_MEASURE} in %")] if bars else []

    return Panels(
        "seen",
        "Seen and unseen categories",
        f"{_MEASURE} of CLIP-ITA, the mean over seeds; a setting without unseen categories has one bar.",
        panels,
        wide=True,
    )


def depth_bars() -> Panels:
    """Figure 7.2: d of errors in the same tree."""

    def panels(evidence: Evidence) -> list[str]:
        drawn = []
        for setting in SETTINGS:
            row = evidence.figures.get(setting, {})
            shares = {int(name[4:]): figure for name, figure in row.items() if name.startswith("d = ")}
            if shares:
                drawn.append(_histogram(setting, shares))
        return drawn

    return Panels(
        "depths",
        "Figure 7.2: distance between the category that asked and that of a wrong first product",
        "d = depth(c_p) − depth(c), of CLIP-ITA's errors within one tree, in per cent of them: below 0 a more general "
        "category was found, above 0 a more specific one. The most general setting has none: two roots are never "
        "in one tree.",
        panels,
    )


def _histogram(setting: str, shares: Mapping[int, Figure]) -> str:
    from diptych.report.drawing import BLUE, INK, ORANGE, draw

    with draw(f"depths-{setting}", size=(4.8, 3.2)) as drawing:
        axes = drawing.axes
        for depth, figure in sorted(shares.items()):
            axes.bar(
                depth,
                figure.mean,
                0.8,
                yerr=figure.sd or None,
                color=BLUE if depth < 0 else ORANGE if depth > 0 else _GREY,
                error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 1.5},
            )
            if figure.mean:
                axes.text(
                    depth,
                    figure.mean + (figure.sd or 0),
                    f"{figure.mean:.0f}",
                    ha="center",
                    va="bottom",
                    fontsize=9,
                )
        axes.set_xticks(sorted(shares))
        axes.tick_params(axis="x", length=0)
        axes.set_ylim(0, 1.15 * max((one.mean + (one.sd or 0) for one in shares.values()), default=1) or 1)
        axes.set(title=SETTINGS[setting].capitalize(), xlabel="d", ylabel="% of errors in the tree")
        said = "; ".join(f"d = {depth}: {figure.mean:.1f} %" for depth, figure in sorted(shares.items()))
        drawing.summary = f"Errors within the tree by d, {SETTINGS[setting]}: {said}."
    return drawing.svg


def _pairs(
    name: str, title: str, bars: Mapping[str, Sequence[float | None]], kinds: Sequence[str], unit: str
) -> str:
    from diptych.report.drawing import BLUE, ORANGE, draw

    with draw(name, size=(9.6, 3.4)) as drawing:
        axes = drawing.axes
        for shift, colour, kind, place in zip((-0.5, 0.5), (BLUE, ORANGE), kinds, (0, 1), strict=True):
            there = [(at, pair[place]) for at, pair in enumerate(bars.values())]
            known = [(at, value) for at, value in there if value is not None]
            axes.bar(
                [at + shift * _WIDE for at, _ in known],
                [value for _, value in known],
                _WIDE,
                color=colour,
                label=kind,
            )
            for at, value in known:
                axes.text(at + shift * _WIDE, value, f"{value:.1f}", ha="center", va="bottom", fontsize=9)
        axes.set_xticks(range(len(bars)), list(bars))
        axes.tick_params(axis="x", length=0)
        axes.set(title=title, ylabel=unit)
        drawing.figure.legend(loc="outside upper right", ncols=2)
        said = "; ".join(
            f"{called}: "
            + ", ".join(
                f"{value:.1f} {kind}" for value, kind in zip(pair, kinds, strict=True) if value is not None
            )
            for called, pair in bars.items()
        )
        drawing.summary = f"{title}, {unit}: {said}."
    return drawing.svg
