"""What an exploration means, in a few plain sentences; never more than it shows."""

from __future__ import annotations

from diptych.evaluation.variants.exploration import Exploration, Variant

__all__ = ["explain"]

_NAMED = 3  # other explanations that are named
_LUCKY = 0.2  # share of made-up targets from which on an explanation says little


def explain(found: Exploration) -> list[str]:
    """The verdict, what speaks for it and what it leaves open, one sentence or two each."""
    lines = [_as_given(found)]
    if found.as_given.explains:
        lines.append("No change of protocol is needed to explain what is printed.")
    elif found.explanations:
        lines += _explained(found)
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


def _meaning(found: Exploration, one: Variant) -> str:
    return "; ".join(found.words[change.axis, change.choice] for change in one.changes)


def _explained(found: Exploration) -> list[str]:
    best, *others = found.explanations
    cells, together = len(found.target.cells), len(best.changes) > 1
    told = f"{best.line()} explain it together" if together else f"{best.line()} explains it"
    lines = [
        f"{told}: {_meaning(found, best)}. All {cells} cells come within {_percent(found.tolerance)} "
        f"({_percent(best.mean_error)} off on average, {len(best.exact)} of {cells} to the printed digit)."
    ]
    if together:
        needed = []
        for change in best.changes:
            rest = found.without(best, change)
            if rest is not None:
                needed.append(f"without {change} {len(rest.within)} of {cells} cells do")
        lines.append(f"Each is needed: {', '.join(needed)}.")
    as_simple = [one for one in others if len(one.changes) == len(best.changes)]
    if as_simple:
        shown = "; ".join(one.line() for one in as_simple[:_NAMED])
        more = f"; and {len(as_simple) - _NAMED} more" if len(as_simple) > _NAMED else ""
        lines.append(
            f"As few changes would also do it: {shown}{more}. A tolerance of {_percent(found.tolerance)} cannot "
            "tell them apart."
        )
    return lines


def _unexplained(found: Exploration) -> list[str]:
    nearest, cells = found.nearest, len(found.target.cells)
    lines = [
        f"Nothing that was tried explains it. Nearest comes {nearest.line()}: {len(nearest.within)} of {cells} "
        f"cells within {_percent(found.tolerance)}, {_percent(nearest.mean_error)} off on average and "
        f"{_percent(nearest.worst_error)} at worst."
    ]
    if found.out_of_reach:
        lines.append(f"No variant comes within tolerance of {', '.join(found.out_of_reach)}.")
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
    if found.luck is None or found.as_given.explains:
        return f"{text}."
    text += (
        f"; of made-up targets between two tried variants {_percent(found.luck)} would be explained as simply"
    )
    text += ", so that something fits says little by itself. " if found.luck > _LUCKY else ". "
    return text + "What is printed is consistent with the explanation, which is no proof of it."
