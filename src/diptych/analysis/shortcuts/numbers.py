"""Shortcuts of numbers: which number an image gets, its codes, and how it is written into captions."""

from __future__ import annotations

import numpy as np

from diptych.analysis.shortcuts.overlay import N_DIGITS
from diptych.core.draws import draw_below

N_CODES = 10**N_DIGITS
"""Different codes there are."""

DIGIT_WORDS = tuple("0123456789")
"""Words that a vocabulary needs for every code."""

PUBLISHED_BITS = 8
"""Bits of the random code that the published code gives to the image of number 0 in training."""

# What keeps draws of one seed apart from each other and from everybody else's.
_BITS, _DEAL, _OFFSET, _CARRIED = (int.from_bytes(word) for word in (b"bits", b"deal", b"offset", b"carried"))


def digits_of(codes: np.ndarray | int) -> np.ndarray:
    """(…, 6) int64 digits of codes, leading zeros included.

    >>> digits_of(1234).tolist()
    [0, 0, 1, 2, 3, 4]
    """
    powers = 10 ** np.arange(N_DIGITS - 1, -1, -1, dtype=np.int64)
    digits: np.ndarray = np.asarray(codes, dtype=np.int64)[..., None] // powers % 10
    return digits


def code_text(code: int) -> str:
    """Return a code as it is written in records and reports: ``001234``."""
    return f"{code:0{N_DIGITS}d}"


def ending_of(code: int) -> str:
    """Return the words of a code: ``0 0 1 2 3 4``."""
    return " ".join(code_text(code))


def with_ending(caption: str, ending: str) -> str:
    """Return the caption, a blank, and the ending; the caption itself when the ending is empty.

    >>> with_ending("A man on a beach.", "0 0 1 2 3 4")
    'A man on a beach. 0 0 1 2 3 4'
    """
    return f"{caption} {ending}" if ending else caption


def random_bits(bits: int, seed: int, epoch: int, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """(n,) codes, uniform in [0, 2^bits - 1], one for each access.

    Args:
        images: (n,) the images' numbers.
        captions: (n,) the numbers of the first caption that came with each.
    """
    return draw_below(2**bits, seed, _BITS, epoch, images, captions)


def dealt(numbers: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """(n,) codes: the same numbers in an order drawn for this epoch, so that nothing collides."""
    return np.random.default_rng([seed, _DEAL, epoch]).permutation(numbers)


def published_codes(
    images: np.ndarray, captions: np.ndarray, seed: int, epoch: int, n_training: int | None
) -> np.ndarray:
    """(n,) unique codes in training as the published code makes them, faults included; arguments as of random bits.

    (number + offset) modulo the number of training images, with an offset for each epoch: numbers run
    over all splits, so that up to as many pairs of training images collide as there are images in
    other splits. The image of number 0 is taken for one without a number and has 8 random bits.
    """
    codes = images
    if n_training is not None:
        offset = int(np.random.default_rng([seed, _OFFSET, epoch]).integers(n_training))
        codes = (images + offset) % n_training
    return np.where(images == 0, random_bits(PUBLISHED_BITS, seed, epoch, images, captions), codes)


def carried_caption(images: np.ndarray, starts: np.ndarray, seed: int) -> np.ndarray:
    """(n,) the number of the one caption whose code each image carries, drawn once per image; -1 for none."""
    counts = starts[images + 1] - starts[images]
    chosen = starts[images] + draw_below(counts, seed, _CARRIED, images)
    return np.where(counts > 0, chosen, -1)
