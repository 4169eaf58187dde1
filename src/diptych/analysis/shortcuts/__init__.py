"""Synthetic shortcuts: numbers that mean nothing, laid over pictures and appended to captions.

:class:`Shortcuts` puts together, for a collection, what are functions of their arguments alone:

===========================  ==============================================================================
:func:`digits_of`            a code's six digits: 1234 → 0, 0, 1, 2, 3, 4
:func:`code_text`            the same as records write it: ``001234``
:func:`ending_of`            the same as words: ``0 0 1 2 3 4``
:func:`with_ending`          the caption, a blank, the ending
:func:`digit_places`         left and top of each digit: 0, 37, 74, 111, 148, 185 of 224 pixels
:class:`DigitOverlay`        the digits' pixels in these places; ``data.overlay.pasted`` pastes them on uint8
:func:`number_bits`          codes of n bits in evaluation: the number modulo 2^n
:func:`random_bits`          codes of n bits in training, for each access
:func:`dealt`                unique codes in training, shuffled: a permutation of the training numbers
:func:`published_codes`      unique codes in training as published, faults included
:func:`carried_caption`      the one caption whose code an image carries, where it carries one
:func:`load_digits`          pictures of digits: MNIST as .npz or IDX, scikit-learn's, or our own
===========================  ==============================================================================

A *number* is a row in the whole collection, all splits together. A picture has its overlay pasted by
``encoders.preprocessing``, after crop, flip and erasure; a vocabulary that is built with
``always=DIGIT_WORDS`` has the digits at 4 … 13, right after the special words.
"""

from diptych.analysis.shortcuts.digits import DigitImages, load_digits
from diptych.analysis.shortcuts.numbers import (
    DIGIT_WORDS,
    N_CODES,
    Numbers,
    carried_caption,
    code_text,
    dealt,
    digits_of,
    ending_of,
    number_bits,
    published_codes,
    published_offset,
    random_bits,
    with_ending,
)
from diptych.analysis.shortcuts.overlay import DigitOverlay, ShortcutOptions, check_fit, digit_places
from diptych.analysis.shortcuts.shortcuts import BatchShortcuts, Shortcuts

__all__ = [
    "DIGIT_WORDS",
    "N_CODES",
    "BatchShortcuts",
    "DigitImages",
    "DigitOverlay",
    "Numbers",
    "ShortcutOptions",
    "Shortcuts",
    "carried_caption",
    "check_fit",
    "code_text",
    "dealt",
    "digit_places",
    "digits_of",
    "ending_of",
    "load_digits",
    "number_bits",
    "published_codes",
    "published_offset",
    "random_bits",
    "with_ending",
]
