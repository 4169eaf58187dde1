"""Synthetic shortcuts: numbers that mean nothing, laid over images and appended to captions.

:class:`Shortcuts` puts together, for a collection, what are functions of their arguments alone. A *number* is a row in
the whole collection, all splits together; a *code* is six digits, on an image as pixels and behind a caption as words.
An image has its overlay pasted by ``encoders.preprocessing``, after crop, flip and erasure; a vocabulary that is built
with ``always=DIGIT_WORDS`` has the digits at 4 … 13, right after the special words.
"""

from diptych.analysis.shortcuts.codes import (
    DIGIT_WORDS,
    N_CODES,
    DigitOverlay,
    ShortcutOptions,
    check_fit,
    code_text,
    digit_places,
    digits_of,
    ending_of,
    random_bits,
    with_ending,
)
from diptych.analysis.shortcuts.digits import DigitImages, load_digits
from diptych.analysis.shortcuts.shortcuts import BatchShortcuts, Shortcuts

__all__ = [
    "DIGIT_WORDS",
    "N_CODES",
    "BatchShortcuts",
    "DigitImages",
    "DigitOverlay",
    "ShortcutOptions",
    "Shortcuts",
    "check_fit",
    "code_text",
    "digit_places",
    "digits_of",
    "ending_of",
    "load_digits",
    "random_bits",
    "with_ending",
]
