"""Which code an image or a caption has, as pure functions of numbers.

A *number* is a row in the whole collection (see ``numbers``); an *access* is one time that an image is
taken in training, named by its epoch, its number and the number of the first of its captions that came
with it, so that an image that is taken five times in an epoch has five accesses.

==============  ==================================  ===================================
setup           code in training                    code in evaluation
==============  ==================================  ===================================
unique          the number, or :func:`dealt`        the number
bits            :func:`random_bits` of the access   :func:`number_bits`
per-caption     as unique, of captions              the caption's number
==============  ==================================  ===================================

As published, unique codes in training are :func:`published_codes`.
"""

from __future__ import annotations

import numpy as np

from diptych.core.draws import draw_below

PUBLISHED_BITS = 8
"""Bits of the random code that the published code gives to the image of number 0 in training."""

# What keeps draws of one seed apart from each other and from everybody else's.
_BITS, _DEAL, _OFFSET, _CARRIED = (int.from_bytes(word) for word in (b"bits", b"deal", b"offset", b"carried"))


def random_bits(bits: int, seed: int, epoch: int, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """(n,) codes, uniform in [0, 2^bits - 1], one for each access.

    Args:
        images: (n,) the images' numbers.
        captions: (n,) the numbers of the first caption that came with each.
    """
    return draw_below(2**bits, seed, _BITS, epoch, images, captions)


def number_bits(bits: int, numbers: np.ndarray) -> np.ndarray:
    """(n,) codes: numbers modulo 2^bits."""
    codes: np.ndarray = numbers % 2**bits
    return codes


def dealt(numbers: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """(n,) codes: the same numbers in an order drawn for this epoch.

    Nobody outside ``numbers`` has one of these codes, so that nothing collides.
    """
    return np.random.default_rng([seed, _DEAL, epoch]).permutation(numbers)


def published_offset(n_training: int, seed: int, epoch: int) -> int:
    """The offset of :func:`published_codes` in this epoch, uniform in [0, n_training - 1]."""
    return int(np.random.default_rng([seed, _OFFSET, epoch]).integers(n_training))


def published_codes(
    images: np.ndarray, captions: np.ndarray, seed: int, epoch: int, n_training: int | None
) -> np.ndarray:
    """(n,) unique codes in training as the published code makes them, faults included.

    (number + offset) modulo the number of training images, with an offset for each epoch: numbers run
    over all splits, so that up to as many pairs of training images collide as there are images in
    other splits. The image of number 0 is taken for one without a number and has 8 random bits.

    Args:
        images: (n,) the images' numbers.
        captions: (n,) the numbers of the first caption that came with each.
    """
    codes = images
    if n_training is not None:
        codes = (images + published_offset(n_training, seed, epoch)) % n_training
    return np.where(images == 0, random_bits(PUBLISHED_BITS, seed, epoch, images, captions), codes)


def carried_caption(images: np.ndarray, starts: np.ndarray, seed: int) -> np.ndarray:
    """(n,) the number of the one caption whose code each image carries, drawn once per image.

    Args:
        images: (n,) the images' numbers.
    """
    counts = starts[images + 1] - starts[images]
    chosen = starts[images] + draw_below(counts, seed, _CARRIED, images)
    return np.where(counts > 0, chosen, -1)
