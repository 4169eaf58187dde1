"""Explore: try variants of the protocol, few changes first, and hold each against what was printed.

All variants of up to two changes are tried. If none of them prints every cell alike, the nearest ones are changed
further, up to ``changes`` changes. The order of work, and so the result, depends only on the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from diptych.core.context import report_to, task
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.axes import AXES, DEPTHS, Axis, Choice, Settings, Sources
from diptych.evaluation.variants.exploration import NEAR, TOLERANCE, Change, Exploration, Variant
from diptych.evaluation.variants.recompute import NotPossible, Recompute

_EXHAUSTIVE = 2  # changes up to which everything is tried
_BEAM = 16  # of the nearest that are changed further
_PAIRS = 4_000  # made-up targets at most
_RARE = 0.05  # what more made-up targets than these meet as nearly is not put before what is simpler


def distinct(variants: Iterable[Variant]) -> list[Variant]:
    """Return the first of those with the same values."""
    found: dict[tuple[float, ...], Variant] = {}
    for one in variants:
        found.setdefault(tuple(round(value, 9) for value in one.values.values()), one)
    return list(found.values())


def luck(variants: Sequence[Variant], target: Target, tolerance: float, met: str) -> float | None:
    """Return the share of made-up targets that some variant meets too: where it is large, a fit says little.

    They lie halfway (geometric mean, cell by cell) between two tried variants that differ by more than the
    tolerance. They meet as ``explains`` or ``is_near`` of :class:`Variant` says, with as few changes as the simplest
    that does, or as ``is_exact`` does. None where nothing meets the real one, or no two variants are far apart.
    """
    meeting = [one for one in variants if getattr(one, met)]
    if not meeting:
        return None
    if met != "is_exact":
        fewest = max(1, min(len(one.changes) for one in meeting))
        variants = [one for one in variants if len(one.changes) <= fewest]
    allowed = {"explains": tolerance, "is_near": NEAR * tolerance, "is_exact": 0.0}[met]
    half = np.array([cell.unit / 2 for cell in target.cells.values()])
    values = np.array([list(one.values.values()) for one in distinct(variants)])
    one, other = np.triu_indices(len(values), 1)
    apart = np.abs(values[one] - values[other]) > tolerance * np.maximum(values[one], values[other])
    pairs = np.flatnonzero(np.any(apart, axis=1))
    if not len(pairs):
        return None
    hits = []
    for pair in pairs[:: -(-len(pairs) // _PAIRS)]:
        made_up = np.sqrt(values[one[pair]] * values[other[pair]])
        near = np.abs(values - made_up) <= np.maximum(allowed * made_up, half) + 1e-9
        hits.append(bool(np.any(np.all(near, axis=1))))
    return float(np.mean(hits))


def explore(
    sources: Sources,
    target: Target,
    *,
    tolerance: float = TOLERANCE,
    axes: Iterable[str | Axis] | None = None,
    changes: int = 4,
    threads: int | None = None,
    warnings: Sequence[str] = (),  # what has to be known before any verdict, e.g. that the data are others
) -> Exploration:
    """Try variants and say which bring what was printed within tolerance.

    A printed sum of recalls that are printed too is no cell of its own.
    """
    if not 0 < tolerance < 1:
        raise UsageError(f"tolerance is {tolerance}, it must lie between 0 and 1", "0.05 is 5 %")
    for label, source in sources.items():
        if not source.truth.n_images or not source.truth.n_texts:
            raise DataError(f"{label} has {source.truth.n_images} images and {source.truth.n_texts} texts")
    chosen = [AXES.get(axis) if isinstance(axis, str) else axis for axis in axes or AXES]
    target = target.independent
    choices = {axis.name: list(axis.choices(sources, target)) for axis in chosen}
    search = _Search(sources, target, choices, tolerance, threads)
    exhaustive = max(1, min(_EXHAUSTIVE, changes))
    with task("variants", unit="variants") as search.bar:
        for count in range(exhaustive + 1):
            search.try_all(count)
        for _ in range(exhaustive, changes):
            if any(one.is_exact for one in search.found.values()):
                break
            search.widen()
        search.complete()
    some = list(search.found.values())
    near_luck = luck(some, target, tolerance, "is_near")
    near = min((len(one.changes) for one in some if one.is_near), default=exhaustive + 1)
    fewest = min((len(one.changes) for one in some if one.explains), default=near)
    telling = fewest < near <= exhaustive and near_luck is not None and near_luck <= _RARE

    def order(one: Variant) -> tuple[Any, ...]:
        simplest = (len(one.changes), -len(one.exact)) if one.explains else (0, 0)
        return not one.explains, telling and not one.is_near, *simplest, *one.distance

    variants = sorted(some, key=order)
    return Exploration(
        target=target,
        tolerance=tolerance,
        choices=choices,
        variants=variants,
        refused=dict(sorted(search.refused.items(), key=lambda one: (-len(one[1]), one[0]))),
        exhaustive=exhaustive,
        luck=luck(variants, target, tolerance, "explains"),
        near_luck=near_luck,
        exact_luck=luck(variants, target, tolerance, "is_exact"),
        telling=telling,
        warnings=warnings,
        galleries=search.recompute.sizes(search.default),
        about={label: dict(source.about) for label, source in sources.items()},
    )


class _Search:
    def __init__(
        self,
        sources: Sources,
        target: Target,
        choices: dict[str, list[Choice]],
        tolerance: float,
        threads: int | None,
    ) -> None:
        self._target, self._tolerance = target, tolerance
        fields: dict[str, Any] = {}
        for default, *_ in choices.values():
            fields |= default.fields
        first = next(iter(sources))
        self.default = Settings(**{"source": first, **fields})
        self._options = {
            Change(axis, one.name): one for axis, (_, *others) in choices.items() for one in others
        }
        deepest, depth = sources[first].most_matched, self.default.depth
        most = max(DEPTHS) if deepest is None else min(deepest, max(DEPTHS)) if deepest else 16
        self.recompute = Recompute(
            sources, target.cells, most if depth == "everything" else max(most, depth), threads
        )
        self.found: dict[tuple[Change, ...], Variant] = {}
        self.refused: dict[str, list[tuple[Change, ...]]] = {}
        self._seen: set[tuple[Change, ...]] = set()
        self.bar: Any = None

    def try_all(self, count: int) -> None:
        self._try(combinations(self._options, count))

    def widen(self) -> None:
        """Try one more change for the nearest, and for those with most cells printed alike."""
        near = sorted((one for one in self.found.values() if one.changes), key=lambda one: one.distance)
        alike = sorted(near, key=lambda one: -len(one.exact))
        kept = {one.changes: one for some in (near, alike) for one in distinct(some)[:_BEAM]}
        self._try((*changes, other) for changes in kept for other in self._options)

    def complete(self) -> None:
        """Try every part of what explains, so that a minimal explanation is one."""
        for one in [one for one in self.found.values() if one.explains]:
            for count in range(1, len(one.changes)):
                self._try(combinations(one.changes, count))

    def _try(self, untried: Iterable[Sequence[Change]]) -> None:
        new: list[tuple[tuple[str, ...], tuple[Change, ...], Settings]] = []
        for changes in map(tuple, map(sorted, untried)):
            if changes in self._seen or len({change.axis for change in changes}) < len(changes):
                continue
            self._seen.add(changes)
            options = [self._options[change] for change in changes]
            fields = {name: value for one in options for name, value in one.fields.items()}
            settings = replace(self.default, **fields)
            if all(one.applies(settings) for one in options):
                # Variants of one view next to each other, so that its candidates serve all.
                view = (settings.source, settings.captions, settings.partition, settings.relevance)
                new.append(((*view, str(settings.depth).rjust(12)), changes, settings))
        for _, changes, settings in sorted(new, key=lambda one: one[:2]):
            try:
                with report_to(None):  # one bar for all variants, none for each of their rankings
                    self.found[changes] = self._judged(changes, settings)
            except NotPossible as error:
                self.refused.setdefault(str(error), []).append(changes)
            finally:
                self.bar.advance(1)

    def _judged(self, changes: tuple[Change, ...], settings: Settings) -> Variant:
        values, cells = self.recompute.cells(settings), self._target.cells
        errors = {name: cell.error(values[name]) for name, cell in cells.items()}
        within, near = (
            tuple(name for name, cell in cells.items() if cell.within(values[name], tolerance))
            for tolerance in (self._tolerance, NEAR * self._tolerance)
        )
        exact = tuple(name for name, cell in cells.items() if cell.is_print_of(values[name], settings.rule))
        return Variant(changes, values, errors, within, near, exact)
