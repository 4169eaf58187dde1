"""columns: whether values stand in the columns they are of; rotated and swapped ones have been printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from diptych.evaluation.printed.target import SUM_PARTS
from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Settings, Step
from diptych.metrics.ground_truth import DIRECTIONS

_OTHER = {"i2t": "t2i", "t2i": "i2t"}


def _rotated(cells: Mapping[str, float], directions: tuple[str, ...], by: int) -> dict[str, float]:
    """Under R@1, R@5, R@10 the values of the columns ``by`` places further right."""
    found = dict(cells)
    for direction in directions:
        for place, name in enumerate(SUM_PARTS):
            found[f"{direction} {name}"] = cells[f"{direction} {SUM_PARTS[(place + by) % len(SUM_PARTS)]}"]
    return found


def _swapped(cells: Mapping[str, float]) -> dict[str, float]:
    return {f"{_OTHER[name[:3]]}{name[3:]}": value for name, value in cells.items()}


def _choices(inputs: Inputs) -> Sequence[Choice]:
    found = [Choice("own", "every value in its own column", lambda settings: replace(settings, rewrite=None))]

    def add(name: str, words: str, step: Step) -> None:  # type: ignore[type-arg]
        def apply(settings: Settings) -> Settings:
            return replace(settings, rewrite=step)

        found.append(Choice(name, words, apply))

    full = tuple(
        direction
        for direction in DIRECTIONS
        if all(f"{direction} {name}" in inputs.target.cells for name in SUM_PARTS)
    )
    groups = [(direction,) for direction in full] + ([full] if len(full) > 1 else [])
    for directions, by in product(groups, (1, 2)):
        order = [SUM_PARTS[(place + by) % len(SUM_PARTS)] for place in range(len(SUM_PARTS))]
        name = f"{' and '.join(directions)} rotated to {', '.join(order)}"
        words = f"under R@1, R@5, R@10 of {' and '.join(directions)} stand {', '.join(order)}"
        add(name, words, Step(name, partial(_rotated, directions=directions, by=by)))
    add("directions swapped", "what is printed as i2t is t2i, and the reverse", Step("swapped", _swapped))
    return found


COLUMNS = AXES.add(
    Axis(
        name="columns",
        description="whether R@1, R@5, R@10 or the directions were exchanged in print",
        choices=_choices,
    )
)
