"""Synthetic shortcuts: numbers that mean nothing, laid over images and appended to captions.

A *number* is a row in the whole collection, all splits together; a *code* is six digits, on an image as pixels
(pasted by ``encoders.preprocessing``, after crop, flip and erasure) and behind a caption as words, which a
vocabulary that is built with ``always=DIGIT_WORDS`` has at 4 … 13.
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
