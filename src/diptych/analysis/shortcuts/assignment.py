"""Which codes images carry and captions end with, setup by setup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from diptych.analysis.shortcuts.codes import (
    carried_caption,
    dealt,
    number_bits,
    published_codes,
    random_bits,
)
from diptych.analysis.shortcuts.options import ShortcutOptions
from diptych.core.errors import MismatchError, UnknownNameError
from diptych.data.collection import Collection

__all__ = ["Assigned", "Assignment"]


@dataclass(frozen=True)
class Assigned:
    """Codes of some images and captions.

    Attributes:
        carried: per image, the codes that its picture would carry, from the top.
        ends: (n_captions,) int64, the code that each caption would end with.
    """

    carried: list[np.ndarray]
    ends: np.ndarray


class Assignment:
    """From numbers to codes, in training and in evaluation.

    Args:
        options: the setup.
        whole: the collection whose rows the numbers are.
        train: the split that is trained on.
        seed: of what is drawn.
    """

    def __init__(self, options: ShortcutOptions, whole: Collection, train: str, seed: int) -> None:
        self._options = options
        self._whole = whole
        self._train = train
        self._seed = seed
        # Batches of two epochs can be under way at once, no more.
        self._dealt = lru_cache(maxsize=2)(lambda epoch: dealt(self._own, seed, epoch))

    def in_training(
        self,
        images: np.ndarray,
        captions: np.ndarray,
        caption_image: np.ndarray,
        firsts: np.ndarray,
        epoch: int,
    ) -> Assigned:
        """Codes of a batch.

        Args:
            images: (b,) the images' numbers.
            captions: (c,) the captions' numbers.
            caption_image: (c,) place in ``images`` of each caption's image.
            firsts: (b,) the number of the first caption that came with each image.
            epoch: of the accesses.
        """
        options, seed = self._options, self._seed
        if options.setup == "per-caption":
            codes = self._unique(epoch)
            return Assigned([codes(numbers) for numbers in self._carried(images)], codes(captions))
        if options.bits is not None:
            chosen = random_bits(options.bits, seed, epoch, images, firsts)
        elif options.compat == "published":
            n_training = len(self._own) if options.shuffled else None
            chosen = published_codes(images, firsts, seed, epoch, n_training)
        else:
            chosen = self._unique(epoch)(images)
        return Assigned(list(chosen[:, None]), chosen[caption_image])

    def in_evaluation(self, images: np.ndarray, captions: np.ndarray, caption_image: np.ndarray) -> Assigned:
        """Codes of images and captions that are evaluated; arguments as for a batch."""
        if self._options.setup == "per-caption":
            return Assigned(self._carried(images), captions)
        bits = self._options.bits
        chosen = images if bits is None else number_bits(bits, images)
        return Assigned(list(chosen[:, None]), chosen[caption_image])

    @property
    def most_carried(self) -> int:
        """The most codes that an image carries."""
        if self._options.setup == "per-caption" and self._options.carries == "all":
            return max(1, int(self._whole.captions_per_image.max(initial=1)))
        return 1

    def _carried(self, images: np.ndarray) -> list[np.ndarray]:
        """Numbers of the captions whose codes each image carries."""
        starts = self._whole.caption_start
        if self._options.carries == "one":
            chosen = carried_caption(images, starts, self._seed)
            return [numbers[numbers >= 0] for numbers in chosen[:, None]]
        return [np.arange(starts[image], starts[image + 1]) for image in images.tolist()]

    def _unique(self, epoch: int) -> Callable[[np.ndarray], np.ndarray]:
        """What makes codes of the numbers of training images, or of training captions.

        It raises MismatchError for a number that is not among those that codes are dealt to.
        """
        if not self._options.shuffled:
            return lambda numbers: numbers
        own, codes = self._own, self._dealt(epoch)

        def dealt_code(numbers: np.ndarray) -> np.ndarray:
            places = np.minimum(np.searchsorted(own, numbers), len(own) - 1)
            if np.any(own[places] != numbers):
                raise MismatchError(
                    f"a batch holds what is not in split {self._train!r}, among whose {len(own):,} numbers "
                    "codes are dealt",
                    "take batches of that split",
                )
            dealt_codes: np.ndarray = codes[places]
            return dealt_codes

        return dealt_code

    @cached_property
    def _own(self) -> np.ndarray:
        """Numbers of the training split's images, or of its captions where those have codes; ascending.

        Raises:
            UnknownNameError: there is no such split.
        """
        own = np.flatnonzero(np.asarray(self._whole.splits, dtype=object) == self._train)
        if not len(own):
            raise UnknownNameError(f"split of {self._whole.name}", self._train, self._whole.split_sizes)
        if self._options.setup == "per-caption":
            return np.flatnonzero(np.isin(self._whole.caption_image, own))
        return own
