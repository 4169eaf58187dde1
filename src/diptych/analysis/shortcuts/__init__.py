"""Synthetic shortcuts: numbers that mean nothing, laid over pictures and appended to captions.

``numbers`` says which number an image or caption has, ``codes`` which code it carries when, ``captions``
and ``overlay`` how a code is written into a text and over a picture, ``digits`` (with ``digit_files`` and
``drawn_digits``) what its digits look like; all of these are functions of their arguments. ``shortcuts``
puts them together for a collection.
"""

from diptych.analysis.shortcuts.captions import DIGIT_WORDS, ending_of, with_ending
from diptych.analysis.shortcuts.digits import DigitImages, load_digits
from diptych.analysis.shortcuts.numbers import code_text, digits_of
from diptych.analysis.shortcuts.options import ShortcutOptions
from diptych.analysis.shortcuts.overlay import DigitOverlay, digit_places
from diptych.analysis.shortcuts.shortcuts import BatchShortcuts, Shortcuts

__all__ = [
    "DIGIT_WORDS",
    "BatchShortcuts",
    "DigitImages",
    "DigitOverlay",
    "ShortcutOptions",
    "Shortcuts",
    "code_text",
    "digit_places",
    "digits_of",
    "ending_of",
    "load_digits",
    "with_ending",
]
