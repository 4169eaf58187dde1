"""Exploration: all variants that were tried against what was printed, the verdict in words, and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from diptych.core.table import Cell, Table, Tabular
from diptych.evaluation.printed.digits import DigitReport, read_digits
from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.axes import AXES, Choice
from diptych.metrics.ground_truth import Direction

NEAR = 0.1  # share of the tolerance within which a cell is near: what rounding and the order of ties leave
_DEEPEST = 10  # the last cut-off that tables print
_NAMED = 3  # other explanations that are named
_LUCKY = 0.2  # share of made-up targets from which on an explanation says little
_OTHERS = "What remains is not the protocol as far as these axes go: other weights, data or preprocessing."
_RERANKED = (
    "The digits look like those of a few re-ranked candidates (below), which can be tried with contrastive and "
    "matching scores, not with one of them: with --reranked FOLDER (or diptych evaluate --rerank K), or --matching "
    "FILE for a score matrix."
)

TOLERANCE = 0.05  # relative distance within which the thesis (ch. 2) counts a number as reproduced


class Change(NamedTuple):
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
        return len(self.near) == len(self.errors)

    @property
    def is_exact(self) -> bool:
        return len(self.exact) == len(self.errors)

    @property
    def distance(self) -> tuple[float, int, tuple[Change, ...]]:
        """Return what orders variants by nearness: of equal distances fewer changes come first."""
        return round(self.mean_error, 12), len(self.changes), self.changes

    def line(self) -> str:
        """Return the changes in words: ``k_test = 2, captions = first``."""
        return ", ".join(map(str, self.changes)) or "the default protocol"

    def to_dict(self) -> dict[str, Any]:
        values = {name: round(value, 4) for name, value in self.values.items()}
        counts = {"within": len(self.within), "near": len(self.near), "exact": len(self.exact)}
        return {"changes": self.line(), "values": values, "mean_error": self.mean_error, **counts}


@dataclass(frozen=True, eq=False)
class Exploration(Tabular):
    """Protocols that would explain printed numbers, and what their digits say; without variants the digits only."""

    target: Target  # what was printed
    tolerance: float = TOLERANCE  # relative distance within which a cell counts as explained
    choices: Mapping[str, Sequence[Choice]] = field(default_factory=dict)  # per axis, the default first
    # all that were tried, the best first: those that bring all cells within tolerance, by how few changes
    # they need, then to the printed digit, then by distance; then the others by distance. Those that are near
    # come before simpler ones where that is ``telling``
    variants: Sequence[Variant] = ()
    # by reason, the changes of the variants that could not be tried
    refused: Mapping[str, Sequence[tuple[Change, ...]]] = field(default_factory=dict)
    exhaustive: int = 2  # up to how many changes everything was tried
    # shares of made-up targets between two tried variants that some variant of as few changes brings within
    # tolerance too, is as near to, and prints alike; None where the target does not allow it
    luck: float | None = None
    near_luck: float | None = None
    exact_luck: float | None = None
    telling: bool = False  # being near says more than being simple: made-up targets are hardly ever met so
    warnings: Sequence[str] = ()  # what has to be known before anything is believed
    # per direction: size of a gallery, mean positives of a query, queries, as given
    galleries: Mapping[Direction, tuple[int, float, int]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)  # what the numbers depend on
    of: Sequence[str] = ()  # what was printed, and what it is computed again from

    @property
    def default(self) -> dict[str, str]:
        """Return the default choice of every axis."""
        return {axis: choices[0].name for axis, choices in self.choices.items()}

    @cached_property
    def as_given(self) -> Variant:
        """Return the default protocol's variant."""
        return next(one for one in self.variants if not one.changes)

    @property
    def nearest(self) -> Variant:
        return min(self.variants, key=lambda one: one.distance)

    @cached_property
    def explanations(self) -> tuple[Variant, ...]:
        """Return minimal ones: all cells within tolerance, and not so with any of their changes left out.

        Before them those that are near although something simpler explains too, where that is ``telling``.
        """
        simple = _minimal([one for one in self.variants if one.explains])
        near = _minimal([one for one in self.variants if one.is_near]) if self.telling else []
        return (*near, *(one for one in simple if one not in near))

    @cached_property
    def exact_explanations(self) -> tuple[Variant, ...]:
        """Return minimal ones that print every cell alike."""
        return tuple(_minimal([one for one in self.variants if one.is_exact]))

    @cached_property
    def single_changes(self) -> list[Variant]:
        """Return per axis the best single change, the one that comes nearest first."""
        best: dict[str, Variant] = {}
        for one in sorted(self.variants, key=lambda one: (one.mean_error, one.changes)):
            if len(one.changes) == 1:
                best.setdefault(one.changes[0].axis, one)
        return list(best.values())

    @cached_property
    def out_of_reach(self) -> list[str]:
        """Return the cells that no variant brings within tolerance."""
        reached = {name for one in self.variants for name in one.within}
        return [name for name in self.target.cells if name not in reached]

    @cached_property
    def digits(self) -> DigitReport:
        return read_digits(self.target, self.galleries)

    def meaning(self, variant: Variant) -> str:
        """Return what a variant changes, in words."""
        words = {(axis, one.name): one.words for axis, choices in self.choices.items() for one in choices}
        return "; ".join(words[change] for change in variant.changes)

    def __str__(self) -> str:
        """Return the verdict and what it leaves open, then what the digits say."""
        return "\n".join([*explain(self), *self.digits.sentences()])

    def tables(self) -> list[Table]:
        """Return the printed cells, with the nearest variants where there are any."""
        return [variants_table(self)]

    def lines(self) -> list[str]:
        """Return the verdict without its warnings, what the digits say, and what it was computed from."""
        signs = self.digits.sentences()
        head = "the digits:" if signs else "the digits: nothing that other digits would not say as well"
        verdict = explain(self)[len(self.warnings) :]
        return [*verdict, head, *(f"  {sign}" for sign in signs), *self.of]

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-able, with what follows from it."""
        content = {"format": 2, "target": self.target.to_dict(), "of": list(self.of), "says": explain(self)}
        content |= {"digits say": self.digits.sentences(), "digits": self.digits.to_dict()}
        if not self.variants:
            return content
        plain = ("tolerance", "default", "exhaustive", "luck", "near_luck", "exact_luck", "telling", "about")
        content |= {name: getattr(self, name) for name in (*plain, "out_of_reach", "galleries")}
        for name in ("explanations", "exact_explanations", "single_changes", "variants"):
            content[name] = [one.to_dict() for one in getattr(self, name)]
        content["warnings"] = list(self.warnings)
        content["refused"] = {
            reason: [", ".join(map(str, one)) for one in some] for reason, some in self.refused.items()
        }
        content["choices"] = [
            [axis, one.name, one.words] for axis, choices in self.choices.items() for one in choices
        ]
        return content


def _minimal(some: Sequence[Variant]) -> list[Variant]:
    """Return those of which no other has only a part of the changes."""
    sets = [frozenset(one.changes) for one in some]
    return [one for one, own in zip(some, sets, strict=True) if not any(other < own for other in sets)]


def explain(found: Exploration) -> list[str]:
    """Return the warnings, the verdict and what it leaves open, one sentence or two each."""
    lines = [f"{warning}." for warning in found.warnings]
    if not found.variants:
        return lines
    default, cells, cut = found.as_given, len(found.target.cells), found.default.get("k_test", "")
    within, near = _percent(found.tolerance), _percent(NEAR * found.tolerance)
    lines.append(
        f"Under the default protocol {len(default.within)} of {cells} printed cells are within {within}, "
        f"{_percent(default.mean_error)} off on average and {_percent(default.worst_error)} at worst."
    )
    if cut.isdigit() and int(cut) < _DEEPEST:  # few candidates are given, and everything starts from there
        lines.append(f"By default {found.choices['k_test'][0].words}.")
    if not found.explanations:
        nearest = found.nearest
        lines.append(
            f"Nothing that was tried explains it. Nearest comes {nearest.line()}: {len(nearest.within)} of {cells} "
            f"cells within {within}, {_percent(nearest.mean_error)} off on average and "
            f"{_percent(nearest.worst_error)} at worst."
        )
        if found.out_of_reach:
            lines.append(f"No variant comes within tolerance of {', '.join(found.out_of_reach)}.")
        truncated = any(one.kind == "truncated" for one in found.digits.signs)
        lines.append(_RERANKED if truncated and cut == "none" else _OTHERS)
        return [*lines, f"{len(found.variants):,} variants were tried."]
    best, *others = found.explanations
    if not best.changes:
        enough = "No change of protocol is needed to explain what is printed."
        lines.append("The default protocol gives such numbers." if found.warnings else enough)
    else:
        if default.explains:
            lines.append("That would do, but a change of protocol comes much nearer.")
        together = len(best.changes) > 1
        explains = "explain it together" if together else "explains it"
        if found.warnings:  # nothing here can say why they were printed
            explains = f"would give such numbers{' together' if together else ''}"
        lines.append(
            f"{best.line()} {explains}: {found.meaning(best)}. All {cells} cells come within {within} "
            f"({_percent(best.mean_error)} off on average, {len(best.exact)} of {cells} to the printed digit)."
        )
        if not best.is_near:
            lines.append(
                f"It does not come near (within {near} of every cell), as the same weights and data under the right "
                "protocol would but for ties: something else may differ too."
            )
        rivals = [one for one in others if one.changes and len(one.changes) <= len(best.changes)]
        if rivals:
            lines.append(f"As few changes would also do it: {_named(rivals)}.")
    if found.exact_explanations:
        exact, *also = found.exact_explanations
        alike = "It prints every cell alike"
        if exact.changes not in ((), best.changes):
            alike = f"Every cell is printed alike under {exact.line()}: {found.meaning(exact)}"
        also = [one for one in also if len(one.changes) == len(exact.changes)]
        lines.append(f"{alike}{f' (and under {_named(also)})' if also else ''}.")
    return [*lines, _tried(found)]


def _tried(found: Exploration) -> str:
    explaining, best = sum(one.explains for one in found.variants), found.explanations[0]
    text = f"{len(found.variants):,} variants were tried, {explaining:,} of them are within tolerance"
    if found.luck is None or not best.changes:
        return f"{text}."
    shares = {"explained as simply": found.luck, "met as nearly": found.near_luck}
    shares["met to the digit"] = found.exact_luck
    met = ", ".join(f"{_percent(share)} would be {how}" for how, share in shares.items() if share is not None)
    text += f"; of made-up targets between two tried variants {met}"
    luck = found.near_luck if best.is_near and found.near_luck is not None else found.luck
    text += ", so that something fits says little by itself" if luck > _LUCKY else ""
    return f"{text}. What is printed is consistent with the explanation, which is no proof of it."


def _named(some: list[Variant]) -> str:
    more = f"; and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
    return "; ".join(f"{one.line()} ({_percent(one.mean_error)} off)" for one in some[:_NAMED]) + more


def _percent(share: float) -> str:
    if share < 5e-6:
        return "0 %"
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def variants_table(found: Exploration, most: int = 12) -> Table:
    """Return what is printed, and below it the default, what explains and the nearest others.

    None has the values of one before.
    """
    cells = found.target.cells
    printed = [Cell("printed"), *(Cell(str(cell), value=cell.value) for cell in cells.values())]
    if not found.variants:
        return Table("Printed", ("", *cells), [printed])
    shown: dict[tuple[float, ...], Variant] = {}
    for one in (found.as_given, *found.exact_explanations[:1], *found.explanations, *found.variants):
        # The same numbers with the digits cut off are another print.
        shown.setdefault((*(round(value, 6) for value in one.values.values()), len(one.exact)), one)
    rows = [[*printed, Cell(""), Cell("", words=True)]]
    for one in list(shown.values())[:most]:
        row = [Cell(one.line())]
        for name, cell in cells.items():
            mark = " =" if name in one.exact else " ✓" if name in one.within else ""
            text, is_in = f"{one.values[name]:.{cell.decimals}f}{mark}", name in one.within
            row.append(Cell(text, shade=0.4 if is_in else 0.0, colour="green", value=one.values[name]))
        rows.append([*row, Cell.number(100 * one.mean_error), _meaning(found, one)])
    after = f"✓ within {100 * found.tolerance:g} % of what is printed, = printed alike; off: mean relative distance."
    columns = ("variant", *cells, "off, %", "what it means")
    return Table(found.target.label or "Variants", columns, rows, after=after)


def _meaning(found: Exploration, one: Variant) -> Cell:
    return Cell(found.meaning(one) or "nothing is changed", words=True)


def changes_table(found: Exploration) -> Table:
    """Return how far the best choice on each single axis comes."""
    rows = []
    tried = [one.changes[0].axis for one in found.variants if len(one.changes) == 1]
    for one in [found.as_given, *found.single_changes]:
        choices = tried.count(one.changes[0].axis) if one.changes else 0
        within = Cell(f"{len(one.within)} of {len(found.target.cells)}", value=len(one.within))
        distances = Cell.number(100 * one.mean_error), Cell.number(100 * one.worst_error)
        many = Cell.number(choices or None, 0)
        rows.append([Cell(one.line()), many, within, *distances, _meaning(found, one)])
    cells = f"cells within {100 * found.tolerance:g} %"
    columns = ("best single change", "choices", cells, "off, %", "worst, %", "what it means")
    return Table("Single changes", columns, rows)


def axes_tables(found: Exploration) -> list[Table]:
    """Return what was varied and what each choice means, the default first, and what could not be tried."""
    descriptions, rows = {axis.name: axis.description for axis in AXES}, []
    for axis, choices in found.choices.items():
        for one in choices:
            name = Cell(one.name, "default" if one is choices[0] else "", words=True)
            open_ = Cell(descriptions.get(axis, ""), words=True)
            rows.append([Cell(axis), name, Cell(one.words, words=True), open_])
    tables = [Table("What was tried", ("name", "choice", "what it means", "what is left open"), rows)]
    refused = []
    for reason, some in found.refused.items():
        first = min(some, key=lambda changes: (len(changes), changes))
        refused.append(
            [Cell(", ".join(map(str, first))), Cell.number(len(some), 0), Cell(reason, words=True)]
        )
    if refused:
        tables.append(Table("Not tried", ("the first of them", "variants", "why"), refused))
    return tables
