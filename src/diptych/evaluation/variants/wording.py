"""What an exploration means, in a few plain sentences; never more than it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.evaluation.printed.signs import Sign
from diptych.evaluation.variants.exploration import NEAR, Variant

if TYPE_CHECKING:
    from diptych.evaluation.variants.exploration import Exploration

_DEEPEST = 10  # the last cut-off that tables print
_NAMED = 3  # other explanations that are named
_LUCKY = 0.2  # share of made-up targets from which on an explanation says little


def explain(found: Exploration) -> list[str]:
    """The verdict, what speaks for it and what it leaves open, one sentence or two each."""
    lines = [f"{warning}." for warning in found.warnings]
    lines += [_as_given(found), *_cut_by_default(found)]
    if found.explanations and found.explanations[0].changes:
        if found.as_given.explains:
            lines.append("That would do, but a change of protocol comes much nearer.")
        lines += _explained(found)
    elif found.as_given.explains:
        lines.append(
            "The default protocol gives such numbers."
            if found.warnings
            else "No change of protocol is needed to explain what is printed."
        )
        lines += [line for one in _truncated(found) for line in _of_the_gain(found, one)]
    else:
        lines += _unexplained(found)
    return [*lines, *_exactly(found), _tried(found)]


def _percent(share: float) -> str:
    if share < 5e-6:
        return "0 %"
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def _as_given(found: Exploration) -> str:
    one, cells = found.as_given, len(found.target.cells)
    return (
        f"Under the default protocol {len(one.within)} of {cells} printed cells are within "
        f"{_percent(found.tolerance)}, {_percent(one.mean_error)} off on average and "
        f"{_percent(one.worst_error)} at worst."
    )


def _cut_by_default(found: Exploration) -> list[str]:
    """What is given may hold few candidates itself, and everything starts from there."""
    default = found.default.get("k_test", "")
    if not default.isdigit() or int(default) >= _DEEPEST:
        return []
    return [f"By default {found.words['k_test', default]}."]


def _meaning(found: Exploration, one: Variant) -> str:
    return "; ".join(found.words[change.axis, change.choice] for change in one.changes)


def _truncated(found: Exploration) -> list[Sign]:
    return [one for one in found.digits.signs if one.kind == "truncated"]


def _of_the_gain(found: Exploration, sign: Sign) -> list[str]:
    """What the default protocol makes of a gain in print that nothing but chance explains."""
    before, after = sign.cells
    printed, given = found.target.cells, found.as_given.values
    gain, here = printed[after].value - printed[before].value, given[after] - given[before]
    if here <= 2 * gain + printed[after].unit:
        return []
    return [
        f"But {after} − {before.split()[1]} is {gain:.{printed[after].decimals}f} in print and {here:.2f} under the "
        "default protocol."
    ]


def _explained(found: Exploration) -> list[str]:
    best, *others = found.explanations
    cells, together = len(found.target.cells), len(best.changes) > 1
    s = "" if together else "s"
    told = f"{best.line()} explain{s} it{' together' if together else ''}"
    if found.warnings:  # nothing here can say why they were printed
        told = f"{best.line()} would give such numbers{' together' if together else ''}"
    lines = [
        f"{told}: {_meaning(found, best)}. All {cells} cells come within {_percent(found.tolerance)} "
        f"({_percent(best.mean_error)} off on average, {len(best.exact)} of {cells} to the printed digit)."
    ]
    if together:
        without = [(change, found.without(best, change)) for change in best.changes]
        # Where less explains too, it is the nearness that every change is needed for.
        nearly = any(rest is not None and rest.explains for _, rest in without)
        needed = ", ".join(
            f"without {change} {len(rest.near if nearly else rest.within)} of {cells} cells do"
            for change, rest in without
            if rest is not None
        )
        within = f" to come within {_percent(NEAR * found.tolerance)}" if nearly else ""
        lines.append(f"Each is needed{within}: {needed}.")
    if not best.is_near:
        lines.append(
            f"It does not come near (within {_percent(NEAR * found.tolerance)} of every cell), as the same weights "
            "and data under the right protocol would but for ties: something else may differ too."
        )
    return [*lines, *_as_simple(found, best, others)]


def _as_simple(found: Exploration, best: Variant, others: list[Variant]) -> list[str]:
    """Explanations of no more changes than the one that is named, and whether they can be told from it."""
    rivals = [one for one in others if one.changes and len(one.changes) <= len(best.changes)]
    if not rivals:
        return []
    shown = "; ".join(f"{one.line()} ({_percent(one.mean_error)} off)" for one in rivals[:_NAMED])
    more = f"; and {len(rivals) - _NAMED} more" if len(rivals) > _NAMED else ""
    if best.is_near and not any(one.is_near for one in rivals):
        apart = f"None of these comes as near as {best.line()}."
    else:
        apart = f"A tolerance of {_percent(found.tolerance)} cannot tell them apart."
    return [f"As few changes would also do it: {shown}{more}. {apart}"]


def _unexplained(found: Exploration) -> list[str]:
    nearest, cells = found.nearest, len(found.target.cells)
    lines = [
        f"Nothing that was tried explains it. Nearest comes {nearest.line()}: {len(nearest.within)} of {cells} "
        f"cells within {_percent(found.tolerance)}, {_percent(nearest.mean_error)} off on average and "
        f"{_percent(nearest.worst_error)} at worst."
    ]
    if found.out_of_reach:
        lines.append(f"No variant comes within tolerance of {', '.join(found.out_of_reach)}.")
    if _truncated(found) and found.default.get("k_test") == "none":
        lines.append(
            "The digits look like those of a few re-ranked candidates (below), which can be tried with contrastive "
            "and matching scores, not with one of them."
        )
    else:
        lines.append(
            "What remains is not the protocol as far as these axes go: other weights, data or preprocessing."
        )
    return lines


def _exactly(found: Exploration) -> list[str]:
    if not found.exact_explanations:
        return []
    best, *others = found.exact_explanations
    also = [one for one in others if len(one.changes) == len(best.changes)]
    if not best.changes or (found.explanations and best.changes == found.explanations[0].changes):
        told = "It prints every cell alike"
    else:
        told = f"Every cell is printed alike under {best.line()}: {_meaning(found, best)}"
    if also:
        told += f" (and under {'; '.join(one.line() for one in also[:_NAMED])})"
    if found.exact_luck is None:
        return [f"{told}."]
    if found.exact_luck > _LUCKY:
        return [f"{told}; with so few digits that says little."]
    return [f"{told}; of made-up targets {_percent(found.exact_luck)} are met to the digit."]


def _tried(found: Exploration) -> str:
    explaining = sum(one.explains for one in found.variants)
    text = f"{len(found.variants):,} variants were tried, {explaining:,} of them are within tolerance"
    if found.luck is None or not found.explanations[0].changes:
        return f"{text}."
    near = found.explanations[0].is_near and found.near_luck is not None
    text += (
        f"; of made-up targets between two tried variants {_percent(found.luck)} would be explained as simply"
    )
    text += f" and {_percent(found.near_luck or 0.0)} as nearly" if near else ""
    says_little = (found.near_luck if near else found.luck) or 0.0
    text += ", so that something fits says little by itself. " if says_little > _LUCKY else ". "
    return text + "What is printed is consistent with the explanation, which is no proof of it."
