"""Target: the cells that were printed, each with its digits, from whatever form they are given in."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from diptych.core.errors import UsageError
from diptych.metrics import DIRECTIONS, Direction, GainMeasure, Measure, measure

RULES = ("round", "truncate")  # what is done with the digits that are not printed
SUM_PARTS = ("R@1", "R@5", "R@10")
_MOST_DECIMALS = 4  # a number with more was never printed, and they say nothing of queries
_SUM = "rsum"
_SLACK = 1e-9  # a product in float64 may miss the digit that it is by this much
_FORM = 'e.g. "i2t R@1=64.6", "t2i R@10=82.48", "i2t rsum=245.5" or "rsum=448.16"'


@dataclass(frozen=True)
class Printed:
    """One printed number; shares are in per cent."""

    value: float
    decimals: int  # digits after the point

    def __post_init__(self) -> None:
        if not 0 <= self.decimals <= _MOST_DECIMALS:
            text = f"{self.value} with {self.decimals} digits after the point"
            raise UsageError(text, f"0 to {_MOST_DECIMALS} are read")

    @property
    def unit(self) -> float:
        """Return one of the last digit."""
        return float(10.0**-self.decimals)

    def is_print_of(self, value: float, rule: str) -> bool:
        """Return whether ``value`` is printed as this number by ``rule``; a half may be rounded either way."""
        if rule == "truncate":
            return self.value - _SLACK <= value < self.value + self.unit - _SLACK
        return abs(value - self.value) <= self.unit / 2 + _SLACK

    def error(self, value: float) -> float:
        """Return the relative distance, of a printed zero that in units of the last digit."""
        return abs(value - self.value) / (abs(self.value) or self.unit)

    def within(self, value: float, tolerance: float) -> bool:
        """Return whether ``value`` is within the relative ``tolerance``, or would be printed alike."""
        return abs(value - self.value) <= max(tolerance * abs(self.value), self.unit / 2) + _SLACK

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"


def cell_parts(name: str) -> tuple[Direction | None, str]:
    """Return ``"i2t R@1"`` as direction and measure; ``"rsum"``, the sum of both directions, has no direction."""
    first, _, rest = name.strip().partition(" ")
    direction: Direction | None = "i2t" if first == "i2t" else "t2i" if first == "t2i" else None
    kind = rest.strip() if direction else name.strip()
    if kind == _SUM:
        return direction, kind
    if direction is None:
        raise UsageError(f"cell {name!r} names neither i2t nor t2i", _FORM)
    member = measure(kind)
    if isinstance(member, GainMeasure):
        raise UsageError(f"cell {name!r} is no function of where the positives stand", _FORM)
    if not isinstance(member, Measure):
        raise UsageError(f"cell {name!r} is a sum that cannot be taken per direction", _FORM)
    return direction, kind


def sum_cells(name: str) -> list[str]:
    """Return the recalls that ``"i2t rsum"`` or ``"rsum"`` adds up."""
    direction, _ = cell_parts(name)
    sides = DIRECTIONS if direction is None else (direction,)
    return [f"{side} {part}" for side in sides for part in SUM_PARTS]


@dataclass(frozen=True)
class Target:
    cells: Mapping[str, Printed]  # by name: ``"i2t R@1"``, ``"t2i MRR"``, ``"i2t rsum"``, ``"rsum"``
    label: str = ""  # where it was printed
    runs: int = 1  # of how many runs each number is a mean

    def __post_init__(self) -> None:
        if not self.cells:
            raise UsageError("the target has no cell", _FORM)
        for name, cell in self.cells.items():
            _, kind = cell_parts(name)
            member = None if kind == _SUM else measure(kind)
            share = isinstance(member, Measure) and member.kind == "share"
            if not math.isfinite(cell.value) or cell.value < 0 or (share and cell.value > 100):
                raise UsageError(f"{name} = {cell.value} is no share in per cent", _FORM)

    def recalls(self, direction: str) -> dict[int, Printed]:
        """Return the printed recalls of one direction by cut-off, ascending."""
        found = {}
        for name, cell in self.cells.items():
            given, kind = cell_parts(name)
            if given == direction and kind.startswith("R@"):
                found[int(kind.removeprefix("R@"))] = cell
        return dict(sorted(found.items()))

    @property
    def independent(self) -> Self:
        """Return the same without sums whose recalls are all printed: they say nothing more."""
        cells = {
            name: cell
            for name, cell in self.cells.items()
            if not name.endswith(_SUM) or not all(part in self.cells for part in sum_cells(name))
        }
        return replace(self, cells=cells)

    def to_dict(self) -> dict[str, str]:
        return {name: str(cell) for name, cell in self.cells.items()}


_FORMS = 'e.g. {"i2t R@1": 64.6, "t2i R@10": 82.48}, {"i2t": [63.3, 91.1, 91.1]} or "i2t R@1=64.6"'

_SIDES = {
    **dict.fromkeys(("i2t", "txt", "tr", "image-to-text", "image2text", "text retrieval"), "i2t"),
    **dict.fromkeys(("t2i", "img", "ir", "text-to-image", "text2image", "image retrieval"), "t2i"),
}
_CELL = re.compile(
    rf"(?P<side>{'|'.join(sorted(_SIDES, key=len, reverse=True))})[\s_/:.-]*(?P<rest>@?[a-z0-9].*)", re.I
)
_RECALL = re.compile(r"(?:r|recall)?[\s_]*@?[\s_]*(?P<cutoff>[0-9]+)", re.I)


def cell_name(text: str) -> str:
    """Return a cell's name as :class:`Target` has it, from the ways in which it is written.

    ``i2t R@1`` is also ``i2t_r1``, ``i2t/R@1``, ``i2t recall@1``, ``TR@1`` and ``txt_r1``: the published code
    of ALBEF, BLIP and X-VLM calls image→text by what is retrieved, ``txt``, and text→image ``img``.
    """
    plain = " ".join(text.split())
    found = _CELL.fullmatch(plain)
    if found is None:
        return "rsum" if plain.lower() == "rsum" else plain
    recall = _RECALL.fullmatch(found["rest"])
    rest = found["rest"] if recall is None else f"R@{int(recall['cutoff'])}"
    return f"{_SIDES[found['side'].lower()]} {'rsum' if rest.lower() == 'rsum' else rest}"


def as_target(given: object, decimals: int | None = None, label: str = "") -> Target:
    """Return what was printed as a :class:`Target`; names as :func:`cell_name` understands them.

    Given as a Target; a mapping from cells to numbers, ``{"i2t R@1": 64.6, "t2i R@10": 67.64}``, or from
    directions to mappings or to R@1, R@5 and R@10, ``{"i2t": [64.6, 84.48, 84.5]}``; or texts
    ``"i2t R@1=64.6"``. Shares are in per cent.

    A table prints all its recalls with the same decimals, while a log drops zeros at the end (84.5 next to
    84.48): all have those of the recall with the most, unless ``decimals`` says otherwise; so has every other
    measure.
    """
    if isinstance(given, Target):
        shown = {
            name: Printed(one.value, one.decimals if decimals is None else decimals)
            for name, one in given.cells.items()
        }
        return replace(given, cells=shown, label=label or given.label)
    values: list[tuple[str, object]] = []
    if isinstance(given, Mapping):
        for key, value in given.items():
            name = " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            if getattr(value, "shape", ()) != () or isinstance(value, (list, tuple)):
                if len(value) != len(SUM_PARTS):
                    text = f"{name} has {len(value)} values, not {', '.join(SUM_PARTS)}"
                    raise UsageError(text, "name each cell instead")
                value = dict(zip(SUM_PARTS, value, strict=True))
            inner = value.items() if isinstance(value, Mapping) else [("", value)]
            values += [(f"{name} {part}", number) for part, number in inner]
    else:
        texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
        if not texts or not all(isinstance(text, str) for text in texts):
            raise UsageError(f"a target of type {type(given).__name__} names no cells", _FORMS)
        for text in texts:
            name, _, number = text.rpartition("=")
            if not name.strip() or _number(number) is None:
                raise UsageError(f"target {text!r} is not NAME=NUMBER", _FORM)
            values.append((name, number))
    numbers: dict[str, tuple[float, int]] = {}
    for text, value in values:
        name, found = cell_name(text), _number(value)
        if found is None:
            raise UsageError(f"target {name} is {value!r}, no number", _FORMS)
        if name in numbers:
            twice = f"{numbers[name][0]:g} and {found[0]:g}"
            raise UsageError(f"target: {name} is given twice: {twice}", "give it once")
        numbers[name] = found
    most: dict[str, int] = {}
    for name, (_, digits) in numbers.items():
        most[_kind(name)] = max(most.get(_kind(name), 0), digits)
    cells = {
        name: Printed(value, most[_kind(name)] if decimals is None else decimals)
        for name, (value, _) in numbers.items()
    }
    return Target(cells, label)


def _kind(name: str) -> str:
    """Return what is printed with the same decimals: recalls and their sums, or one other measure."""
    measure = name.rpartition(" ")[2]
    return "R@" if measure.startswith("R@") or measure == "rsum" else measure


def _number(given: object) -> tuple[float, int] | None:
    """Return a finite number and its digits after the point, those that can matter; None where it is none."""
    text = str(given).strip().removesuffix("%").strip()
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    # 84.47999999999999 is 84.48 that has been computed with.
    digits = next((d for d in range(_MOST_DECIMALS) if abs(value - round(value, d)) < 1e-9), _MOST_DECIMALS)
    whole, point, behind = text.partition(".")
    if isinstance(given, str) and point and (whole + behind).strip("+-").isdigit():
        digits = max(digits, min(len(behind), _MOST_DECIMALS))
    return value, digits
