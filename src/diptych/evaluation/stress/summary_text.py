"""Summaries of stress runs and of their comparisons in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from diptych.analysis.perturbations import GROUPS
from diptych.evaluation.drops import Drop
from diptych.evaluation.stress.comparison import ComparedRow, StressComparison
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.result import Preference, StressResult, StressRow
from diptych.metrics import measure

NEARLY_ALL = 0.9
"""Where this share of queries or more was changed, the drop over all of them is as good as that over those."""

_OF = {"t2i": "captions", "i2t": "pictures"}


def shown(name: str, value: float) -> str:
    """The value of a measure as tables print it: shares and sums in per cent, gains as they are."""
    kind = _kind(name)
    return f"{value:.3f}" if kind == "gain" else f"{100 * value if kind == 'share' else value:.1f}"


def shown_difference(name: str, value: float, digits: int = 3) -> str:
    """A difference of two values, signed, in the unit of :func:`shown`; ``0`` where it is exactly that."""
    if value == 0:
        return "0"
    kind = _kind(name)
    return f"{value:+.{digits}f}" if kind == "gain" else f"{100 * value if kind == 'share' else value:+.1f}"


def p_text(value: float) -> str:
    """``p = 0.021`` or ``p < 0.001``."""
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def summarise(result: StressResult) -> list[str]:
    """The sentences of a result: what hurts most, what costs nothing, what is not seen, what was left out."""
    said = []
    for direction, whose in _OF.items():
        rows = [row for row in result.rows if row.direction == direction]
        if rows:
            said += _side(rows, whose)
    fixed = [row.name for row in result.rows if row.draws == 1 < len(row.changed) and any(row.changed)]
    if fixed:
        said.append(f"Every seed does the same, so there is no spread: {_listed(fixed)}")
    said += [
        summarise_preference(row.name, row.preference) for row in result.rows if row.preference is not None
    ]
    if result.left_out:
        said.append(f"{_count(len(result.left_out))} could not be run: {', '.join(result.left_out)}")
    return said


def summarise_row(row: StressRow) -> str:
    """One sentence: what a perturbation costs in rsum."""
    drop = row.drops.get(RSUM)
    name = row.name
    if not any(row.changed):
        return f"{name} changed nothing"
    if drop is None:
        return f"{name}: rsum was not measured"
    if drop.difference == 0 and row.same_share == 1:
        return f"{name} changes nothing: every changed query has the very row of the clean one"
    if not drop.verdict:
        return (
            f"{name} has no significant cost: {_difference(drop)} of {drop.clean:.1f} rsum{_of_changed(row)}"
        )
    verb = "costs" if drop.verdict == "worse" else "gains"
    share = "" if drop.relative is None else f"{100 * abs(drop.relative):.0f} %, "
    said = f"{name} {verb} {abs(drop.difference):.1f} of {drop.clean:.1f} rsum"
    return f"{said} ({share}{p_text(drop.corrected)}){_of_changed(row)}"


def _of_changed(row: StressRow) -> str:
    """What it costs those that it changed, where they are not nearly all."""
    if row.changed_share >= NEARLY_ALL:
        return ""
    one = row.changed_drops[RSUM]
    return (
        f"; {one.difference:+.1f} of {one.clean:.1f} over the {100 * row.changed_share:.0f} % that it changed"
    )


def summarise_preference(name: str, preference: Preference) -> str:
    """One sentence: whether the clean caption is preferred."""
    if preference.ties == 1:
        return (
            f"{name}: own pictures score the clean and the changed caption alike in every pair: blind to it"
        )
    share, ends = 100 * preference.share, ""
    if preference.low is not None and preference.high is not None:
        ends = f" (95 % {100 * preference.low:.1f} to {100 * preference.high:.1f})"
    begun = f"{name}: own pictures score the clean caption higher in {share:.1f} % of pairs{ends}"
    if preference.corrected > 0.05:
        return f"{begun}: not to be told from blind, which is 50 %"
    return begun if share > 50 else f"{begun}: the changed caption is preferred"


def _side(rows: Sequence[StressRow], whose: str) -> list[str]:
    """What hurts queries of one side: the most, group by group, and what does not."""
    measured = [row for row in rows if RSUM in row.drops]
    worse = [row for row in measured if row.drops[RSUM].verdict == "worse"]
    rest = [row for row in measured if not row.drops[RSUM].verdict and any(row.changed)]
    better = [row.name for row in measured if row.drops[RSUM].verdict == "better"]
    said = []
    if worse:
        worst = min(worse, key=lambda row: row.drops[RSUM].difference)
        most = f", the most of {_count(len(measured))}" if len(measured) > 1 else ""
        said.append(f"Of {whose}, {summarise_row(worst)}{most}")
    for group, members in groupby(sorted(worse, key=_place), key=lambda row: row.group):
        some = list(members)
        if len(some) > 1:
            said.append(f"{group.capitalize()}: {_range(some)}")
    thinned = [_thinned(row) for row in worse if row.changed_share < NEARLY_ALL]
    if thinned:
        said.append(f"Over what they changed alone: {_listed(thinned)}")
    blind = [row.name for row in rest if row.same_share == 1]
    nothing = [row.name for row in rest if row.same_share < 1]
    if nothing:
        said.append(f"No significant loss by {_listed(nothing)}")
    if blind:
        said.append(f"The encoder does not see {_listed(blind)}: changed {whose} have the rows of clean ones")
    if better:
        said.append(f"Rsum went up with {_listed(better)}")
    unchanged = [row.name for row in rows if not any(row.changed)]
    if unchanged:
        said.append(f"Nothing to change was found by {_listed(unchanged)}")
    return said


def _thinned(row: StressRow) -> str:
    """A drop over the changed queries alone, in brief."""
    one = row.changed_drops[RSUM]
    return (
        f"{row.name} costs {-one.difference:.1f} of {one.clean:.1f} ({100 * row.changed_share:.0f} % changed)"
    )


def _place(row: StressRow) -> int:
    return list(GROUPS).index(row.group)


def _range(rows: Sequence[StressRow]) -> str:
    """From the least to the most that perturbations of one group cost."""
    drops = sorted((row.drops[RSUM] for row in rows), key=lambda drop: -drop.difference)
    costs = f"{-drops[0].difference:.1f} to {-drops[-1].difference:.1f} of {drops[0].clean:.1f} rsum"
    shares = [100 * abs(drop.relative) for drop in drops if drop.relative is not None]
    share = f" ({min(shares):.0f} to {max(shares):.0f} %)" if shares else ""
    return f"{len(rows)} that are significant cost {costs}{share}"


def _count(number: int) -> str:
    return "1 perturbation" if number == 1 else f"{number} perturbations"


def _difference(drop: Drop) -> str:
    if drop.low is None or drop.high is None:
        return f"{drop.difference:+.1f}"
    return f"{drop.difference:+.1f} (95 % {drop.low:+.1f} to {drop.high:+.1f})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _kind(name: str) -> str:
    """``share``, ``gain``, or ``sum`` of shares in per cent."""
    return "sum" if name == RSUM else str(getattr(measure(name), "kind", "gain"))


def verdict_of(row: ComparedRow, model: str) -> str:
    """``B more robust``, ``B less robust``, or nothing; and who does not see the change at all."""
    verdict = row.differences[model].verdict
    if not verdict:
        return ""
    baseline = next(name for name in row.unseen if name not in row.differences)
    blind = [name for name in (model, baseline) if is_blind_to(row, name)]
    return f"{model} {verdict}" + (f", {_listed(blind)} blind to it" if blind else "")


def is_blind_to(row: ComparedRow, model: str) -> bool:
    """Whether a model gives every changed query the very row of the clean one."""
    return row.unseen[model] == 1


def shown_lost(measure: str, value: float) -> str:
    """A drop, or how two differ; of gains with one decimal more, for they differ by little."""
    return shown_difference(measure, value, digits=4)


def left_out_text(found: StressComparison) -> list[str]:
    """What is left out, those of one reason together."""
    return [
        f"{_listed([name for name, one in found.left_out.items() if one == reason])} ({reason})"
        for reason in dict.fromkeys(found.left_out.values())
    ]


def summarise_comparison(found: StressComparison) -> list[str]:
    """The sentences: who is more robust under what, by the first measure, and what that may rest on."""
    said = []
    for model in found.others:
        for way, whose in _OF.items():
            rows = [row for row in found.of(found.measures[0]) if row.direction == way]
            if rows:
                said.append(_compared_side(found, model, rows, whose))
        said += _disagreements(found, model)
    rows = found.of(found.measures[0])
    for model in found.models:
        blind = [row.name for row in rows if is_blind_to(row, model)]
        if blind:
            said.append(
                f"{model} does not see {_listed(blind)}: changed queries have the rows of clean ones, "
                "so that it loses nothing is blindness"
            )
    told = [
        row.name
        for row in rows
        if not row.keeps_meaning and any(one.verdict for one in row.differences.values())
    ]
    if told:
        said.append(
            f"{_listed(told)}: what the caption says changes, so a model that reads it should lose; to lose "
            "less is no merit by itself"
        )
    return said


def _compared_side(found: StressComparison, model: str, rows: Sequence[ComparedRow], whose: str) -> str:
    """One model against the baseline, by queries of one side."""
    measure, base, parts = found.measures[0], found.baseline, []
    for verdict in ("more robust", "less robust"):
        some = [row for row in rows if row.differences[model].verdict == verdict]
        if some:
            some.sort(key=lambda row: -abs(row.differences[model].difference))
            names = _listed([row.name for row in some])
            parts.append(f"{verdict} than {base} under {len(some)} of {len(rows)}: {names}")
    if not parts:
        parts.append(f"not to be told from {base} under any of {len(rows)}")
    return f"By {measure}, {whose} perturbed, {model} is {'; '.join(parts)}"


def _disagreements(found: StressComparison, model: str) -> list[str]:
    """Where points and shares of the own clean value point to different models."""
    said = []
    for name in found.measures:
        names = []
        for row in found.of(name):
            one = row.differences[model]
            if not one.verdict or one.relative_low is None or one.relative_high is None:
                continue
            if (one.difference > 0 and one.relative_high < 0) or (
                one.difference < 0 and one.relative_low > 0
            ):
                names.append(row.name)
        if names:
            said.append(
                f"{name}: as a share of its own clean value it is the other way round for {model} under "
                f"{_listed(names)}"
            )
    return said
