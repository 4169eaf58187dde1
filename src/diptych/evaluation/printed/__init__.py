"""Conclusions from printed numbers: of how many queries they are shares, and what cannot be."""

from diptych.evaluation.printed.digits import (
    DigitReport,
    Sign,
    chance_of_size,
    names_of,
    possible_sizes,
    read_digits,
    signs,
    truncation,
)
from diptych.evaluation.printed.target import Printed, Target, as_target, cell_name, cell_parts

__all__ = [
    "DigitReport",
    "Printed",
    "Sign",
    "Target",
    "as_target",
    "cell_name",
    "cell_parts",
    "chance_of_size",
    "names_of",
    "possible_sizes",
    "read_digits",
    "signs",
    "truncation",
]
