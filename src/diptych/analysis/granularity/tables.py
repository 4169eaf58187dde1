"""Tables and charts of granularity: features of one collection or of two, their comparison, distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.analysis.granularity.result import Effect, Granularity, GranularityComparison
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table

_LONG = 200  # characters of a caption that is shown
_MOST_BINS = 40
_TAIL = 99.5  # per cent of captions that have bins of their own; the last bin holds the rest


def granularity_tables(measured: Sequence[Granularity], examples: int = 5) -> list[Table]:
    """Return the features of one or several collections, and captions at the extremes."""
    rows, some_skipped = [], any(own.n_skipped for one in measured for own in one.features)
    for feature in measured[0].features:
        cells = [Cell(feature.name)]
        for one in measured:
            own = one.feature(feature.name)
            cells += [
                Cell.number(own.mean, own.decimals, own.low, own.high),
                Cell.number(own.sd, own.decimals),
                Cell("") if own.per_noun is None else Cell.number(own.per_noun, 3),
            ]
            if some_skipped:
                reasons = "; ".join(f"{reason} {count:,}" for reason, count in own.skipped.items())
                cells.append(Cell(f"{own.n_skipped:,}", reasons, value=own.n_skipped))
        published = "; as published" if feature.compat == "published" else ""
        rows.append([*cells, Cell(f"{feature.definition} ({feature.unit}){published}", words=True)])
    heads = ["mean", "sd", "per noun", *(["without value"] if some_skipped else [])]
    columns = [f"{one.name} {head}" if len(measured) > 1 else head for one in measured for head in heads]
    after = "Means over captions with their intervals; sd: over captions."
    tables = [Table("Features", ("feature", *columns, "what is counted"), rows, after=after)]
    extremes = []
    for one in measured:
        for example in [*one.most[:examples], *reversed(one.least[:examples])]:
            text = example.text if len(example.text) <= _LONG else f"{example.text[: _LONG - 1]}…"
            score = Cell.number(example.score, 2, sign="+")
            extremes.append([Cell(one.name), score, Cell(text, words=True)])
    if extremes:
        after = (
            "Score: mean over features of how many standard deviations a caption is above its collection's "
            "mean."
        )
        caption = "Captions at the extremes, most and least granular"
        tables.append(Table(caption, ("collection", "score", "caption"), extremes, after=after))
    return tables


def comparison_table(found: GranularityComparison) -> Table:
    rows = []
    for one in found.differences:
        sizes = [one.d, one.delta, *((one.paired_d, one.paired_delta) if found.paired else ())]
        rows.append(
            [
                Cell(one.name),
                _effect(one.difference, one.decimals),
                _effect(one.relative, 1, 100.0),
                *(_effect(size, 2) for size in sizes),
                Cell.number(one.corrected, 4),
                Cell(one.verdict or "–", words=True, strong=bool(one.verdict)),
            ]
        )
    paired = ("d_z", "δ_z") if found.paired else ()
    after = "d: Cohen's, δ: Cliff's, of captions; "
    if found.paired:
        after += f"d_z, δ_z: the same of the differences of {found.paired:,} images; "
    columns = ("feature", "difference", "%", "d", "δ", *paired, "p", f"{found.second} is")
    return Table(
        f"{found.second} less {found.first}", columns, rows, after=f"{after}p corrected over features."
    )


def _effect(effect: Effect | None, decimals: int, scale: float = 1.0) -> Cell:
    if effect is None:
        return Cell("–")
    value, low, high = (
        None if one is None else scale * one for one in (effect.value, effect.low, effect.high)
    )
    return Cell.number(value, decimals, low, high, "+")


def granularity_charts(measured: Sequence[Granularity]) -> list[Chart]:
    """Return a histogram per feature: the share of captions by value, the last bin with all above."""
    charts = []
    for feature in measured[0].features:
        columns = [one.column(feature.name) for one in measured]
        edges, is_open = bins_of(columns)
        drawn = []
        for one, column in zip(measured, columns, strict=True):
            known = np.minimum(column[~np.isnan(column)], edges[-1])
            heights = (100 * (np.histogram(known, edges)[0] / max(1, len(known)))).tolist()
            drawn.append(Series(one.name, [heights[0], *heights], edges.tolist(), mark="step"))
        after = "The last bin also holds everything above." if is_open else ""
        charts.append(Chart(feature.name, drawn, feature.unit, "% of captions", after=after))
    return charts


def bins_of(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, bool]:
    """Return edges of equal bins for all collections, whole numbers in the middle, and whether the last is open."""
    values = np.concatenate([np.asarray(column)[~np.isnan(column)] for column in columns])
    if not len(values):
        return np.array([-0.5, 0.5]), False
    low, high, top = float(values.min()), float(np.percentile(values, _TAIL)), float(values.max())
    if np.all(values == np.floor(values)):
        high = float(np.ceil(high))
        width = max(1.0, np.ceil((high - low + 1) / _MOST_BINS))
        edges = np.arange(low - 0.5, high + 0.5 + width, width)
    else:
        # Values that are all but equal still need edges that floats can tell apart.
        edges = np.linspace(low, max(high, low + 1e-6 * max(1.0, abs(low))), _MOST_BINS + 1)
    return edges, bool(top > edges[-1])
