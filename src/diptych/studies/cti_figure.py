"""What the reports of thesis chapter 7's studies draw, from the numbers of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from diptych.studies.cti_error_checks import DIFFERENT, SAME
from diptych.studies.cti_rows import FULL, MODELS, SETTINGS, row_name
from diptych.studies.evidence import Evidence, Figure

_MEASURE = "mAP@10"
_WIDE = 0.38
_GREY = "#8a929c"


@dataclass(frozen=True)
class Panels:
    """Panels of what was measured; nothing of what was not.

    Attributes:
        name, title, note, wide: of its place on the page.
        panels: from the evidence.
    """

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
