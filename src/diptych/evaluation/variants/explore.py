"""Explore: try variants of the protocol, few changes first, and hold each against what was printed.

All variants of up to ``exhaustive`` changes are tried. If none of them prints every cell alike, the nearest
ones are changed further, up to ``changes`` changes. The order of work, and so the result, depends on the inputs
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from diptych.core.context import report_to, task
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.axes import DEPTHS
from diptych.evaluation.variants.exploration import NEAR, Change, Exploration, Refusal, Variant, is_telling
from diptych.evaluation.variants.recompute import Recompute
from diptych.evaluation.variants.settings import AXES, Axis, Choice, Inputs, NotPossible, Settings

_PAIRS = 4_000  # made-up targets at most


def distinct(variants: Sequence[Variant]) -> list[Variant]:
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
    pairs = pairs[:: -(-len(pairs) // _PAIRS)]
    hits = []
    for made_up in np.sqrt(values[one[pairs]] * values[other[pairs]]):
        near = np.abs(values - made_up) <= np.maximum(allowed * made_up, half) + 1e-9
        hits.append(bool(np.any(np.all(near, axis=1))))
    return float(np.mean(hits))


TOLERANCE = 0.05  # relative distance within which the thesis (ch. 2) counts a number as reproduced

_EXHAUSTIVE = 2  # changes up to which everything is tried
_BEAM = 16  # of the nearest that are changed further
_Option = tuple[str, Choice]


def explore(
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    axes: Iterable[str | Axis] | None = None,
    changes: int = 4,
    threads: int | None = None,
) -> Exploration:
    """Try variants and say which bring what was printed within tolerance.

    A printed sum of recalls that are printed too is no cell of its own.
    """
    if not 0 < tolerance < 1:
        raise UsageError(f"tolerance is {tolerance}, it must lie between 0 and 1", "0.05 is 5 %")
    for label, source in inputs.sources.items():
        if not source.truth.n_images or not source.truth.n_texts:
            raise DataError(f"{label} has {source.truth.n_images} images and {source.truth.n_texts} texts")
    chosen = [
        AXES.get(axis) if isinstance(axis, str) else axis for axis in (list(AXES) if axes is None else axes)
    ]
    search, exhaustive = _Search(inputs, chosen, tolerance, threads), max(1, min(_EXHAUSTIVE, changes))
    with task("variants", unit="variants") as bar:
        search.bar = bar
        for count in range(exhaustive + 1):
            search.try_all(count)
        for _ in range(exhaustive, changes):
            if any(one.is_exact for one in search.found.values()):
                break
            search.widen()
        search.complete()
    return search.result(exhaustive)


class _Search:
    def __init__(self, inputs: Inputs, axes: Sequence[Axis], tolerance: float, threads: int | None) -> None:
        self._target: Target = inputs.target.independent
        self._inputs, self._tolerance = inputs, tolerance
        self._default = Settings(inputs.first)
        self._defaults: dict[str, Choice] = {}
        self._options: dict[str, list[Choice]] = {}
        for axis in axes:
            first, *others = axis.choices(inputs)
            self._defaults[axis.name] = first
            self._options[axis.name] = others
            self._default = first.apply(self._default)
        deepest = inputs.sources[inputs.first].most_matched
        most = max(DEPTHS) if deepest is None else min(deepest, max(DEPTHS)) if deepest else 16
        depth = self._default.depth
        most = most if depth == "everything" else max(most, depth)
        self._recompute = Recompute(inputs.sources, self._target.cells, most, threads)
        self.found: dict[tuple[Change, ...], Variant] = {}
        self._refused: dict[str, list[tuple[Change, ...]]] = {}
        self._seen: set[tuple[Change, ...]] = set()
        self.bar: Any = None

    def try_all(self, count: int) -> None:
        """Try every variant of ``count`` changes; those of one view together, so that its candidates serve all."""
        self._try(
            [
                tuple(zip(names, choices, strict=True))
                for names in combinations(self._options, count)
                for choices in product(*(self._options[name] for name in names))
            ]
        )

    def widen(self) -> None:
        """Try one more change for the nearest, and for those with most cells printed alike."""
        tried = [one for one in self.found.values() if one.changes]
        near = sorted(tried, key=lambda one: (one.mean_error, len(one.changes), one.changes))
        alike = sorted(near, key=lambda one: -len(one.exact))
        kept = {one.changes: one for some in (near, alike) for one in distinct(some)[:_BEAM]}
        self._try(
            [
                (*self._choices_of(changes), (name, choice))
                for changes in kept
                for name, options in self._options.items()
                if name not in {change.axis for change in changes}
                for choice in options
            ]
        )

    def complete(self) -> None:
        """Try every part of what explains, so that a minimal explanation is one."""
        for one in [one for one in self.found.values() if one.explains]:
            self._try(
                [
                    tuple(self._choices_of(part))
                    for count in range(1, len(one.changes))
                    for part in combinations(one.changes, count)
                ]
            )

    def _choices_of(self, changes: Sequence[Change]) -> list[_Option]:
        return [
            (change.axis, next(one for one in self._options[change.axis] if one.name == change.choice))
            for change in changes
        ]

    def _try(self, wanted: Sequence[Sequence[_Option]]) -> None:
        new: list[tuple[Settings, tuple[Change, ...]]] = []
        for options in wanted:
            changes = tuple(sorted(Change(name, choice.name) for name, choice in options))
            if changes in self._seen:
                continue
            self._seen.add(changes)
            settings = self._default
            for _, choice in options:
                settings = choice.apply(settings)
            if all(choice.applies(settings) for _, choice in options):
                new.append((settings, changes))
        new.sort(key=lambda one: (_words(one[0]), one[1]))
        for settings, changes in new:
            try:
                with report_to(None):  # one bar for all variants, none for each of their rankings
                    values = self._recompute.cells(settings)
            except NotPossible as error:
                self._refused.setdefault(str(error), []).append(changes)
                continue
            finally:
                self.bar.advance(1)
            self.found[changes] = self._judged(changes, values, settings.rule)

    def _judged(self, changes: tuple[Change, ...], values: dict[str, float], rule: str) -> Variant:
        cells = self._target.cells
        errors = {name: cell.error(values[name]) for name, cell in cells.items()}
        within, near = (
            tuple(name for name, cell in cells.items() if cell.within(values[name], tolerance))
            for tolerance in (self._tolerance, NEAR * self._tolerance)
        )
        exact = tuple(name for name, cell in cells.items() if cell.is_print_of(values[name], rule))
        return Variant(changes, values, errors, within, near, exact)

    def result(self, exhaustive: int) -> Exploration:
        some = list(self.found.values())
        near_luck = luck(some, self._target, self._tolerance, "is_near")
        telling = is_telling(some, near_luck, exhaustive)

        def order(one: Variant) -> tuple[Any, ...]:
            simplest = (len(one.changes), -len(one.exact)) if one.explains else (0, 0)
            nearest = (round(one.mean_error, 12), len(one.changes), one.changes)
            return not one.explains, telling and not one.is_near, *simplest, *nearest

        variants = sorted(some, key=order)
        words = {(name, choice.name): choice.words for name, choice in self._defaults.items()}
        words |= {(name, one.name): one.words for name, options in self._options.items() for one in options}
        refused = [
            Refusal(reason, len(some), min(some, key=lambda one: (len(one), one)))
            for reason, some in self._refused.items()
        ]
        return Exploration(
            target=self._target,
            tolerance=self._tolerance,
            default={name: choice.name for name, choice in self._defaults.items()},
            words=words,
            variants=tuple(variants),
            refused=tuple(sorted(refused, key=lambda one: (-one.count, one.reason))),
            exhaustive=exhaustive,
            luck=luck(variants, self._target, self._tolerance, "explains"),
            near_luck=near_luck,
            exact_luck=luck(variants, self._target, self._tolerance, "is_exact"),
            warnings=tuple(self._inputs.warnings),
            galleries=self._recompute.sizes(self._default),
            about={label: dict(source.about) for label, source in self._inputs.sources.items()},
        )


def _words(settings: Settings) -> tuple[str, ...]:
    """Return a key that puts variants of one view next to each other."""
    keep = "" if settings.keep is None else settings.keep.name
    relevance = "" if settings.relevance is None else settings.relevance.name
    return settings.source, keep, settings.partition, relevance, str(settings.depth).rjust(12)
