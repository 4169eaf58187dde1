"""The granularity of one collection, or of two side by side, as a page: numbers, distributions, captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diptych.analysis.granularity import Effect, FeatureSummary, Granularity, GranularityComparison
from diptych.core.errors import UsageError
from diptych.core.files import write_bytes
from diptych.report.palette import DARK, LIGHT


def cell(value: float | None, decimals: int, sign: bool = False) -> str:
    """A number as tables print it; a dash for none."""
    if value is None:
        return "–"
    # Rounded first: what is as good as nothing is +0.00, not −0.00.
    return f"{round(value, decimals) + 0.0:{'+' if sign else ''}.{decimals}f}"


def interval_text(low: float | None, high: float | None, decimals: int, sign: bool = False) -> str:
    """An interval as tables print it; nothing for none."""
    if low is None or high is None:
        return ""
    return f"[{cell(low, decimals, sign)}, {cell(high, decimals, sign)}]"


def difference_cells(effect: Effect | None, decimals: int, scale: float = 1.0) -> tuple[str, str]:
    """A difference or effect size with its sign, and its interval; nothing for one that was not made."""
    if effect is None or effect.value is None:
        return "", ""
    low, high = (None if end is None else scale * end for end in (effect.low, effect.high))
    return cell(scale * effect.value, decimals, True), interval_text(low, high, decimals, True)


def render_granularity(
    measured: Sequence[Granularity], comparison: GranularityComparison | None = None
) -> str:
    """The text of one self-contained HTML page."""
    from markupsafe import Markup

    from diptych.report.granularity_figures import distribution_figure
    from diptych.report.templating import templates

    if len(measured) not in (1, 2):
        raise UsageError(f"a page of {len(measured)} collections", "give one or two")
    names = [one.name for one in measured]
    return (
        templates()
        .get_template("granularity.html.j2")
        .render(
            names=names,
            measured=measured,
            features=measured[0].features,
            comparison=comparison,
            figure=Markup(distribution_figure(measured)),
            skipped=[line for one in measured for line in skipped_lines(one)],
            cell=cell,
            interval=interval_text,
            differences=difference_cells,
            light=LIGHT,
            dark=DARK,
        )
    )


def skipped_lines(measured: Granularity) -> list[str]:
    """Which captions have no value, feature by feature, and why."""
    return [f"{measured.name}, {one.name}: {_why(one)}" for one in measured.features if one.n_skipped]


def _why(feature: FeatureSummary) -> str:
    reasons = "; ".join(f"{reason} {count:,}" for reason, count in feature.skipped.items())
    have = "caption has" if feature.n_skipped == 1 else "captions have"
    return f"{feature.n_skipped:,} {have} no value ({reasons})"


def write_granularity_page(
    path: Path | str, measured: Sequence[Granularity], comparison: GranularityComparison | None = None
) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    write_bytes(path, render_granularity(measured, comparison).encode("utf-8", "replace"))
    return Path(path)
