"""Tables, charts and the one-sentence summary of a stress run and of a comparison of several."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from diptych.analysis.perturbations import GROUPS
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table
from diptych.evaluation.comparison import p_cell
from diptych.evaluation.drops import DropDifference
from diptych.evaluation.stress.comparison import ComparedRow, StressComparison
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.result import CHANGE_GROUPS, StressResult, StressRow
from diptych.metrics import measure

WAYS = {"t2i": "captions query images", "i2t": "images query captions"}
_CHANGED = {"t2i": "captions", "i2t": "images"}
_LEAST = 0.05  # the relative change that is shaded most is at least this
_BEND = 0.6  # below 1: small changes next to the greatest stay visible
_NONE = Cell("–")
_RSUM = "rsum: R@1 + R@5 + R@10 of one direction in per cent, at most 300. "


def shown(name: str, value: float, digits: int = 3, sign: str = "") -> str:
    """Return a value as printed: shares and sums in per cent, gains with so many digits."""
    kind = "sum" if name == RSUM else str(getattr(measure(name), "kind", "gain"))
    if kind == "gain":
        return f"{value:{sign}.{digits}f}"
    return f"{100 * value if kind == 'share' else value:{sign}.1f}"


def shown_difference(name: str, value: float, digits: int = 3) -> str:
    """Return a signed difference in the unit of :func:`shown`; ``0`` where it is exactly that."""
    return "0" if value == 0 else shown(name, value, digits, "+")


def main_measure(found: StressResult) -> str:
    return RSUM if RSUM in found.measures else found.measures[0]


def stress_summary(found: StressResult) -> str:
    """Return one sentence: how many perturbations cost something, and which costs the most."""
    name, parts = main_measure(found), []
    for way, whose in _CHANGED.items():
        rows = [row for row in found.rows if row.direction == way]
        worse = [row for row in rows if row.drops[name].verdict == "worse"]
        if not rows:
            continue
        most = ""
        if worse:
            row = min(worse, key=lambda row: row.drops[name].difference)
            drop = row.drops[name]
            share = "" if drop.relative is None else f", {100 * drop.relative:+.0f} %"
            most = f", the most {row.name} ({shown(name, drop.clean)} → {shown(name, drop.perturbed)}{share})"
        parts.append(
            f"{len(worse) or 'none'} of {len(rows)} perturbations of {whose} cost {name} significantly{most}"
        )
    text = "; ".join(parts) or "no perturbation was run"
    return f"{text[0].upper()}{text[1:]}."


def stress_tables(found: StressResult) -> list[Table]:
    """Return everything that a stress run found; what is long is folded."""
    return [
        *cost_tables(found),
        *preference_tables(found.rows),
        *length_tables(found.rows),
        *agreement_tables(found),
        *change_tables(found),
    ]


def cost_tables(found: StressResult) -> list[Table]:
    """Return clean values, the relative change of every measure, and per group what it costs."""
    main, gains = main_measure(found), [name for name in found.measures if name.startswith("DCG")][:1]
    clean = [
        [Cell(WAYS[way]), *(Cell(shown(name, value), value=value) for name, value in values.items())]
        for way, values in found.clean.items()
    ]
    tables = [Table("Clean queries", ("", *next(iter(found.clean.values()), ())), clean)] if clean else []
    greatest = _greatest(drop.relative for row in found.rows for drop in row.drops.values())
    changes = []
    for row in found.rows:
        each = [
            (row.drops[name], row.drops[name].relative if any(row.changed) else None)
            for name in found.measures
        ]
        shares = [percent(share, greatest=greatest, strong=drop.verdict == "worse") for drop, share in each]
        changes.append([Cell(row.name), *shares])
    if changes:
        after = "Bold: a significant loss. –: nothing was changed, or the clean value is 0."
        caption = "Relative change in % of the clean value"
        tables.append(Table(caption, ("perturbation", *found.measures), changes, after=after))
    columns = ("perturbation", "changed, %", main, "difference", "relative, %", "of changed only", *gains, "p",
               "worse / better, %", "verdict")  # fmt: skip
    for group, meaning in GROUPS.items():
        rows = [_cost(row, main, gains) for row in found.rows if row.group == group]
        if rows:
            tables.append(Table(f"{group}: {meaning}", columns, rows))
    return tables


COST_LEGEND = (
    "Queries are perturbed, the gallery stays clean. "
    + _RSUM
    + "Differences are perturbed less clean, paired by query, with their intervals over images; p is corrected over "
    "everything tested. ±: over seeds. Of changed only: the difference over the changed queries, with its share of "
    "their clean value. Worse / better: queries whose R@1 + R@5 + R@10 went down / up. Not seen: changed queries "
    "whose embedding is exactly the clean one."
)


def _cost(row: StressRow, main: str, gains: Sequence[str]) -> list[Cell]:
    drop, one = row.drops[main], row.changed_drops.get(main)
    unseen = f"{100 * row.same_share:.1f} % not seen" if sum(row.same) else ""
    head = [Cell(row.name), Cell(f"{100 * row.changed_share:.1f}", unseen, value=row.changed_share)]
    if not any(row.changed):
        return [*head, *[_NONE] * (6 + len(gains)), Cell("nothing to change", words=True)]
    spread = "" if drop.spread is None or row.draws == 1 else f"± {shown(main, drop.spread)}"
    of_changed = _NONE
    if one is not None:
        share = "" if one.relative is None else f"{100 * one.relative:+.1f} %"
        of_changed = Cell(shown_difference(main, one.difference), share, value=one.difference)
    return [
        *head,
        Cell(shown(main, drop.perturbed), spread, value=drop.perturbed),
        _difference(main, drop.difference, drop.low, drop.high),
        percent(drop.relative, drop.relative_low, drop.relative_high),
        of_changed,
        *(_difference(name, row.drops[name].difference, None, None) for name in gains),
        p_cell(drop.corrected),
        Cell(f"{100 * row.sizes['decreased']:.1f} / {100 * row.sizes['increased']:.1f}"),
        Cell("not seen" if row.same_share == 1 else drop.verdict or "–", words=True,
             strong=drop.verdict == "worse"),
    ]  # fmt: skip


def preference_tables(rows: Iterable[StressRow]) -> list[Table]:
    """Return how often the own image scores the clean caption higher than the changed one."""
    cells = []
    for row in rows:
        one = row.preference
        if one is None:
            continue
        verdict = "not significant" if one.corrected > 0.05 else "clean" if one.share > 0.5 else "changed"
        low, high = (None if end is None else 100 * end for end in (one.low, one.high))
        numbers = (
            Cell.number(one.captions, 0),
            Cell.number(100 * one.share, 1, low, high),
            Cell.number(100 * one.ties),
        )
        cells.append([Cell(row.name), *numbers, p_cell(one.corrected), Cell(verdict, words=True)])
    columns = ("perturbation", "captions", "clean, %", "ties, %", "p", "preferred")
    after = "Ties count one half; 50 % is an encoder that cannot tell them apart."
    caption = "The caption that its own image scores higher"
    return [Table(caption, columns, cells, after=after)] if cells else []


def stress_charts(found: StressResult) -> list[Chart]:
    """Return the preference of the clean caption with its interval, against the 50 % of chance."""
    each = {row.name: row.preference for row in found.rows if row.preference is not None}
    if not each:
        return []
    shares, low, high = (
        [None if value is None else 100 * value for value in values]
        for values in zip(*((one.share, one.low, one.high) for one in each.values()), strict=True)
    )
    points = Series("clean", shares, low=low, high=high, mark="point")
    blind = Series("blind", [50.0], mark="level")
    return [Chart("Clean caption preferred", [points, blind], "% of pairs", "", list(each), across=True)]


def length_tables(rows: Sequence[StressRow]) -> list[Table]:
    """Return the share of captions that got worse, by their number of words."""
    rows = [row for row in rows if row.lengths]
    if not rows:
        return []
    ends = ((one.low, one.high) for one in rows[0].lengths)
    columns = [f"{low}–{high} words" if low < high else f"{low} words" for low, high in ends]
    cells = []
    for row in rows:
        shares = [one.decreased for one in row.lengths]
        marked = [Cell.number(100 * one, shade=one**_BEND, colour="orange") for one in shares]
        cells.append([Cell(row.name), *(marked if any(row.changed) else [_NONE] * len(columns))])
    after = "Captions in quarters by length; mean over seeds."
    return [Table("Captions that got worse, in %", ("perturbation", *columns), cells, after=after)]


def agreement_tables(found: StressResult) -> list[Table]:
    """Return how far perturbations hurt the same queries: means, and folded every pair."""
    means, matrices = [], []
    for way, agreement in found.agreement.items():
        left_out = ", ".join(f"{count:,} {group}" for group, count in agreement.left_out.items() if count)
        cells = [Cell.number(getattr(agreement, group), 4) for group in CHANGE_GROUPS]
        means.append(
            [Cell(WAYS[way]), Cell.number(len(agreement.pairs), 0), *cells, Cell(left_out or "0", words=True)]
        )
        names = [row.name for row in found.rows if row.direction == way]
        of = {frozenset((pair["first"], pair["second"])): pair["decreased"] for pair in agreement.pairs}
        rows = []
        for place, name in enumerate(names[1:], 1):
            shared = [of.get(frozenset((name, other))) for other in names[:place]]
            cells = [Cell.number(one, 2, shade=one or 0.0) for one in shared]
            rows.append([Cell(name), *cells, *[Cell("")] * (len(names) - place - 1)])
        caption = f"Queries that get worse under both, {WAYS[way]}"
        matrices.append(Table(caption, ("Jaccard similarity", *names[:-1]), rows, folded=True))
    columns = ("", "pairs", *(f"mean of {group}" for group in CHANGE_GROUPS), "left out over all seeds")
    after = (
        "Jaccard similarity of the queries that two perturbations change alike; 1: the same queries. Left out: pairs"
        " without such a query."
    )
    return [Table("The same queries?", columns, means, after=after), *matrices] if means else []


def change_tables(found: StressResult) -> list[Table]:
    """Return what each perturbation does, how many queries it changed and why not others; and what was left out."""
    rows = []
    for row in found.rows:
        options = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in row.options.items()
        )
        reasons = "; ".join(f"{reason} {count:,}" for reason, count in row.reasons.items())
        seeds = ", ".join(f"{count:,}" for count in row.changed)
        alike = "the same with every seed" if row.draws == 1 < len(row.changed) and any(row.changed) else ""
        rows.append([Cell(row.name), Cell(row.description, options, words=True), Cell(f"{row.queries:,}"),
                     Cell(seeds, alike, words=True), Cell(reasons or "–", words=True)])  # fmt: skip
    columns = ("perturbation", "what it does", "queries", "changed, per seed", "why others were not")
    after = "Reasons are counted over all seeds."
    tables = [Table("What was changed", columns, rows, after=after, folded=True)] if rows else []
    return [*tables, *_left_out("Could not be run", found.left_out.items())]


def _left_out(caption: str, reasons: Iterable[tuple[str, str]]) -> list[Table]:
    rows = [[Cell(name), Cell(reason, words=True)] for name, reason in reasons]
    return [Table(caption, ("perturbation", "why"), rows)] if rows else []


def _difference(name: str, value: float, low: float | None, high: float | None, digits: int = 3) -> Cell:
    note = ""
    if low is not None and high is not None:
        note = f"{shown_difference(name, low, digits)} to {shown_difference(name, high, digits)}"
    return Cell(shown_difference(name, value, digits), note, value=value)


def percent(
    share: float | None,
    low: float | None = None,
    high: float | None = None,
    greatest: float = 0.0,
    strong: bool = False,
) -> Cell:
    """Return a share in per cent; shaded orange for a loss and blue for a gain, relative to ``greatest``."""
    if share is None:
        return _NONE
    low, high = (None if end is None else 100 * end for end in (low, high))
    shade = min(1.0, abs(share) / greatest) ** _BEND if greatest and share else 0.0
    colour = "orange" if share < 0 else "blue"
    cell = Cell.number(100 * share, 1, low, high, "+", shade=shade, colour=colour, strong=strong)
    return cell if share else replace(cell, text="0")


def _greatest(shares: Iterable[float | None]) -> float:
    return max([_LEAST, *(abs(share) for share in shares if share is not None)])


def comparison_summary(found: StressComparison) -> str:
    """Return one sentence: under how many perturbations each model loses less or more than the baseline."""
    rows, parts = found.of(found.measures[0]), []
    for model in found.others:
        verdicts = [row.differences[model].verdict for row in rows]
        less, more = verdicts.count("more robust"), verdicts.count("less robust")
        parts.append(
            f"{model} loses significantly less than {found.baseline} under {less or 'none'} of {len(rows)}"
            f" perturbations and more under {more or 'none'}"
        )
    return f"By {found.measures[0]}, {'; '.join(parts)}."


COMPARISON_LEGEND = (
    _RSUM
    + "Of each model: the loss, its clean value, and the loss in per cent of it. Difference: above 0 where the "
    "model loses less than the baseline. Not seen: every changed query has exactly the embedding of the clean one, so "
    "the model is blind to the change. Other meaning: a model that reads captions should lose, so to lose less is no "
    "merit by itself. p is corrected over everything compared; it and the verdict are of the difference."
)


def comparison_tables(found: StressComparison) -> list[Table]:
    """Return per measure and model what it and the baseline lose, and the difference; and what was left out."""
    tables = []
    for name in found.measures:
        own = [row.own(model).relative for row in found.of(name) for model in found.models]
        for model in found.others:
            columns = ("perturbation", found.baseline, model, "difference", "relative, %", "p", "verdict")
            rows = [_compared(found, row, model, _greatest(own)) for row in found.of(name)]
            caption = f"{name}: {model} against {found.baseline}"
            tables.append(Table(caption, columns, rows))
    return [*tables, *_left_out("Not run for all models", found.left_out.items())]


def _compared(found: StressComparison, row: ComparedRow, model: str, greatest: float) -> list[Cell]:
    one, name = row.differences[model], row.measure
    owns = []
    for of in (found.baseline, model):
        own = row.own(of)
        share = "" if own.relative is None or own.difference == 0 else f", {100 * own.relative:+.1f} %"
        unseen = ", not seen" if row.unseen[of] == 1 else ""
        ground = percent(own.relative, greatest=greatest)
        note = f"of {shown(name, own.clean)}{share}{unseen}"
        loss = shown_difference(name, own.difference, 4)
        owns.append(Cell(loss, note, ground.shade, ground.colour, value=own.difference))
    return [
        Cell(row.name, "" if row.keeps_meaning else "other meaning"),
        *owns,
        _difference(name, one.difference, one.low, one.high, 4),
        percent(one.relative, one.relative_low, one.relative_high),
        p_cell(one.corrected),
        Cell(one.verdict or "–", "the other way round in %" if _disagrees(one) else "", words=True,
             strong=bool(one.verdict)),
    ]  # fmt: skip


def _disagrees(one: DropDifference) -> bool:
    """Return whether points and shares of the own clean value favour different models."""
    if not one.verdict or one.relative_low is None or one.relative_high is None:
        return False
    return one.difference > 0 > one.relative_high or one.difference < 0 < one.relative_low
