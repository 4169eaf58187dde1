"""Exploration: all variants that were tried against what was printed, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from diptych.core.artifact import encode
from diptych.evaluation.printed.digits import DigitReport, read_digits
from diptych.evaluation.printed.target import Target
from diptych.metrics.ground_truth import Direction

NEAR = 0.1  # share of the tolerance within which a cell is near: what rounding and the order of ties leave
_RARE = 0.05  # what more made-up targets than these meet as nearly is not put before what is simpler


@dataclass(frozen=True, order=True)
class Change:
    axis: str
    choice: str

    def __str__(self) -> str:
        return f"{self.axis} = {self.choice}"


@dataclass(frozen=True, eq=False)
class Variant:
    changes: tuple[Change, ...]  # departures from the default protocol; empty for the default itself
    values: Mapping[str, float]  # the target's cells, shares in per cent, with all their digits
    errors: Mapping[str, float]  # relative distance per cell
    within: tuple[str, ...]  # names of the cells within tolerance
    near: tuple[str, ...]  # names of the cells within :data:`NEAR` of it
    exact: tuple[str, ...]  # names of the cells that are printed alike

    @property
    def mean_error(self) -> float:
        return sum(self.errors.values()) / len(self.errors)

    @property
    def worst_error(self) -> float:
        return max(self.errors.values())

    @property
    def explains(self) -> bool:
        """Return whether every cell is within tolerance."""
        return len(self.within) == len(self.errors)

    @property
    def is_near(self) -> bool:
        """Return whether every cell is near."""
        return len(self.near) == len(self.errors)

    @property
    def is_exact(self) -> bool:
        """Return whether every cell is printed alike."""
        return len(self.exact) == len(self.errors)

    def line(self) -> str:
        """Return the changes in words: ``k_test = 2, captions = first``."""
        return ", ".join(map(str, self.changes)) or "the default protocol"

    def to_dict(self) -> dict[str, Any]:
        """Return its cells, JSON-able."""
        values = {name: round(value, 4) for name, value in self.values.items()}
        counts = {"within": len(self.within), "exact": len(self.exact)}
        return {"changes": self.line(), "values": values, "mean_error": self.mean_error, **counts}


@dataclass(frozen=True, eq=False)
class SingleChange:
    axis: str
    best: Variant  # that comes nearest
    tried: int  # how many choices the axis had besides its default


@dataclass(frozen=True)
class Refusal:
    reason: str
    count: int
    first: tuple[Change, ...]  # the changes of one of them


@dataclass(frozen=True, eq=False)
class Exploration:
    """What was tried and what came of it."""

    target: Target  # what was printed
    tolerance: float  # relative distance within which a cell counts as explained
    default: Mapping[str, str]  # axis to the name of its default choice
    words: Mapping[tuple[str, str], str]  # what each choice means: by axis and name
    # all that were tried, the best first: those that bring all cells within tolerance, by how few changes
    # they need, then to the printed digit, then by distance; then the others by distance. Those that are near
    # come before simpler ones where that is :attr:`telling`
    variants: tuple[Variant, ...]
    refused: tuple[Refusal, ...] = ()  # what could not be tried, by reason
    exhaustive: int = 2  # up to how many changes everything was tried
    # shares of made-up targets between two tried variants that some variant of as few changes brings within
    # tolerance too, is as near to, and prints alike; None where that cannot be said of the target
    luck: float | None = None
    near_luck: float | None = None
    exact_luck: float | None = None
    warnings: tuple[str, ...] = ()  # what has to be known before anything is believed
    # per direction: size of a gallery, mean positives of a query, queries, as given
    galleries: Mapping[Direction, tuple[int, float, int]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)  # what the numbers depend on

    @cached_property
    def as_given(self) -> Variant:
        """Return the default protocol's variant."""
        return next(one for one in self.variants if not one.changes)

    @property
    def nearest(self) -> Variant:
        """Return the variant of the least mean distance, of equal ones that of the fewest changes."""
        return min(self.variants, key=lambda one: (round(one.mean_error, 12), len(one.changes), one.changes))

    @cached_property
    def explanations(self) -> tuple[Variant, ...]:
        """Return minimal ones: all cells within tolerance, and not so with any of their changes left out.

        Before them those that are near although something simpler explains too, where that is :attr:`telling`.
        """
        simple = _minimal([one for one in self.variants if one.explains])
        near = _minimal([one for one in self.variants if one.is_near]) if self.telling else ()
        return (*near, *(one for one in simple if one not in near))

    @property
    def telling(self) -> bool:
        """Return whether being near says more than being simple: made-up targets are hardly ever met so."""
        return is_telling(self.variants, self.near_luck, self.exhaustive)

    @cached_property
    def digits(self) -> DigitReport:
        return read_digits(self.target, self.galleries)

    def sentences(self) -> list[str]:
        """Return the verdict, what speaks for it and what it leaves open, then what the digits say."""
        return [*explain(self), *self.digits.sentences()]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    @cached_property
    def exact_explanations(self) -> tuple[Variant, ...]:
        """Return minimal ones that print every cell alike."""
        return _minimal([one for one in self.variants if one.is_exact])

    @cached_property
    def single_changes(self) -> tuple[SingleChange, ...]:
        """Return per axis the best single change, the one that comes nearest first."""
        by_axis: dict[str, list[Variant]] = {}
        for one in self.variants:
            if len(one.changes) == 1:
                by_axis.setdefault(one.changes[0].axis, []).append(one)
        best = [
            SingleChange(axis, min(some, key=lambda one: (one.mean_error, one.changes)), len(some))
            for axis, some in by_axis.items()
        ]
        return tuple(sorted(best, key=lambda one: (one.best.mean_error, one.axis)))

    @cached_property
    def out_of_reach(self) -> tuple[str, ...]:
        """Return the cells that no variant brings within tolerance."""
        reached = {name for one in self.variants for name in one.within}
        return tuple(name for name in self.target.cells if name not in reached)

    def without(self, variant: Variant, change: Change) -> Variant | None:
        """Return the tried variant that lacks one change of another."""
        rest = tuple(one for one in variant.changes if one != change)
        return next((one for one in self.variants if one.changes == rest), None)

    def meaning(self, variant: Variant) -> str:
        """Return what a variant changes, in words."""
        return "; ".join(self.words[change.axis, change.choice] for change in variant.changes)

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-able, with what follows from it; of variants that explain nothing their cells alone."""
        derived = ("explanations", "exact_explanations", "single_changes", "out_of_reach")
        content: dict[str, Any] = encode(self, {}, leave_out={"words", "variants"})
        content |= {name: encode(getattr(self, name), {}) for name in derived}
        content["choices"] = [[*choice, words] for choice, words in self.words.items()]
        content["variants"] = [one.to_dict() for one in self.variants]
        return content


def is_telling(variants: Sequence[Variant], near_luck: float | None, exhaustive: int) -> bool:
    """Whether near variants of few changes come before what explains with fewer; see :class:`Exploration`."""
    near = min((len(one.changes) for one in variants if one.is_near), default=exhaustive + 1)
    fewest = min((len(one.changes) for one in variants if one.explains), default=near)
    return fewest < near <= exhaustive and near_luck is not None and near_luck <= _RARE


def _minimal(some: list[Variant]) -> tuple[Variant, ...]:
    """Return those of which no other has a part of the changes alone."""
    sets = [frozenset(one.changes) for one in some]
    return tuple(
        one for one, changes in zip(some, sets, strict=True) if not any(other < changes for other in sets)
    )


_DEEPEST = 10  # the last cut-off that tables print
_NAMED = 3  # other explanations that are named
_LUCKY = 0.2  # share of made-up targets from which on an explanation says little


def explain(found: Exploration) -> list[str]:
    """Return the verdict, what speaks for it and what it leaves open, one sentence or two each."""
    default, cells, cut = found.as_given, len(found.target.cells), found.default.get("k_test", "")
    lines = [f"{warning}." for warning in found.warnings]
    lines.append(
        f"Under the default protocol {len(default.within)} of {cells} printed cells are within "
        f"{_percent(found.tolerance)}, {_percent(default.mean_error)} off on average and "
        f"{_percent(default.worst_error)} at worst."
    )
    if cut.isdigit() and int(cut) < _DEEPEST:  # few candidates are given, and everything starts from there
        lines.append(f"By default {found.words['k_test', cut]}.")
    truncated = [one for one in found.digits.signs if one.kind == "truncated"]
    if found.explanations and found.explanations[0].changes:
        if default.explains:
            lines.append("That would do, but a change of protocol comes much nearer.")
        lines += _explained(found)
    elif default.explains:
        enough = "No change of protocol is needed to explain what is printed."
        lines.append("The default protocol gives such numbers." if found.warnings else enough)
        for before, after in (sign.cells for sign in truncated):  # gains that nothing but chance explains
            printed = found.target.cells
            gain = printed[after].value - printed[before].value
            here = default.values[after] - default.values[before]
            if here > 2 * gain + printed[after].unit:
                lines.append(
                    f"But {after} − {before.split()[1]} is {gain:.{printed[after].decimals}f} in print and "
                    f"{here:.2f} under the default protocol."
                )
    else:
        lines += _unexplained(found, bool(truncated))
    return [*lines, *_exactly(found), _tried(found)]


def _percent(share: float) -> str:
    if share < 5e-6:
        return "0 %"
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def _explained(found: Exploration) -> list[str]:
    best, *others = found.explanations
    cells, together = len(found.target.cells), len(best.changes) > 1
    explains = "explain it together" if together else "explains it"
    if found.warnings:  # nothing here can say why they were printed
        explains = f"would give such numbers{' together' if together else ''}"
    lines = [
        f"{best.line()} {explains}: {found.meaning(best)}. All {cells} cells come within {_percent(found.tolerance)} "
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
    # Explanations of no more changes than the one that is named, and whether they can be told from it.
    rivals = [one for one in others if one.changes and len(one.changes) <= len(best.changes)]
    if rivals:
        shown = "; ".join(f"{one.line()} ({_percent(one.mean_error)} off)" for one in rivals[:_NAMED])
        more = f"; and {len(rivals) - _NAMED} more" if len(rivals) > _NAMED else ""
        apart = f"A tolerance of {_percent(found.tolerance)} cannot tell them apart."
        if best.is_near and not any(one.is_near for one in rivals):
            apart = f"None of these comes as near as {best.line()}."
        lines.append(f"As few changes would also do it: {shown}{more}. {apart}")
    return lines


def _unexplained(found: Exploration, truncated: bool) -> list[str]:
    nearest, cells = found.nearest, len(found.target.cells)
    lines = [
        f"Nothing that was tried explains it. Nearest comes {nearest.line()}: {len(nearest.within)} of {cells} "
        f"cells within {_percent(found.tolerance)}, {_percent(nearest.mean_error)} off on average and "
        f"{_percent(nearest.worst_error)} at worst."
    ]
    if found.out_of_reach:
        lines.append(f"No variant comes within tolerance of {', '.join(found.out_of_reach)}.")
    remains = (
        "What remains is not the protocol as far as these axes go: other weights, data or preprocessing."
    )
    if truncated and found.default.get("k_test") == "none":
        remains = (
            "The digits look like those of a few re-ranked candidates (below), which can be tried with contrastive "
            "and matching scores, not with one of them."
        )
    return [*lines, remains]


def _exactly(found: Exploration) -> list[str]:
    if not found.exact_explanations:
        return []
    best, *others = found.exact_explanations
    also = [one for one in others if len(one.changes) == len(best.changes)]
    if not best.changes or (found.explanations and best.changes == found.explanations[0].changes):
        told = "It prints every cell alike"
    else:
        told = f"Every cell is printed alike under {best.line()}: {found.meaning(best)}"
    if also:
        told += f" (and under {'; '.join(one.line() for one in also[:_NAMED])})"
    if found.exact_luck is not None and found.exact_luck > _LUCKY:
        told += "; with so few digits that says little"
    elif found.exact_luck is not None:
        told += f"; of made-up targets {_percent(found.exact_luck)} are met to the digit"
    return [f"{told}."]


def _tried(found: Exploration) -> str:
    explaining = sum(one.explains for one in found.variants)
    text = f"{len(found.variants):,} variants were tried, {explaining:,} of them are within tolerance"
    if found.luck is None or not found.explanations[0].changes:
        return f"{text}."
    text += (
        f"; of made-up targets between two tried variants {_percent(found.luck)} would be explained as simply"
    )
    luck = found.luck
    if found.explanations[0].is_near and found.near_luck is not None:
        luck = found.near_luck
        text += f" and {_percent(luck)} as nearly"
    text += ", so that something fits says little by itself" if luck > _LUCKY else ""
    return f"{text}. What is printed is consistent with the explanation, which is no proof of it."
