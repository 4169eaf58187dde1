"""What a person may say about shortcuts."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

N_DIGITS = 6
"""Digits of every code; shorter numbers begin with zeros."""

MOST_BITS = 13


class ShortcutOptions(BaseModel):
    """Synthetic shortcuts: numbers laid over pictures as digits and appended to captions.

    Attributes:
        setup: ``none``: no shortcuts, but a vocabulary that has digits; ``unique``: every image and its
            captions share a number that no other has; ``captions``, ``images``: the same on that side
            alone; ``bits``: a number below 2^bits, drawn at every access in training, the image's
            number modulo 2^bits in evaluation; ``per-caption``: every caption has a number of its own.
        bits: of ``bits``.
        carries: of ``per-caption``: whether the picture carries the numbers of ``all`` its captions, one
            row of digits each, or of ``one`` of them, drawn once per image.
        shuffled: of unique numbers: dealt anew among the training images (or captions) every epoch.
        digits: where pictures of digits come from: a file (MNIST as .npz or as IDX), ``sklearn`` (its
            bundled digits), ``drawn``, or ``auto``: the bundled ones when scikit-learn is installed.
        digit_size: side of a digit, in pixels of the prepared picture.
        in_targets: whether latent targets are those of captions with their numbers, as published.
        compat: ``published``: unique training numbers are, where they are shuffled, (id + an offset drawn
            every epoch) modulo the number of training images, which collide; and id 0 has 8 random
            bits in training.

    Source: Hendriksen's thesis, chapter 4 (Bleeker et al., TMLR 2024), sections 4.3 and 4.D.4.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    setup: Literal["none", "unique", "captions", "images", "bits", "per-caption"] = "unique"
    bits: int | None = Field(None, ge=0, le=MOST_BITS)
    carries: Literal["all", "one"] = "all"
    shuffled: bool = False
    digits: str = "auto"
    digit_size: int = Field(28, ge=5, le=512)
    in_targets: bool = False
    compat: Literal["none", "published"] = "none"

    @property
    def on_images(self) -> bool:
        """Whether pictures carry digits."""
        return self.setup in ("unique", "images", "bits", "per-caption")

    @property
    def on_captions(self) -> bool:
        """Whether captions end with digits."""
        return self.setup in ("unique", "captions", "bits", "per-caption")

    @model_validator(mode="after")
    def _consistent(self) -> ShortcutOptions:
        if (self.bits is not None) != (self.setup == "bits"):
            needs = f"bits, 0 to {MOST_BITS}" if self.bits is None else "no bits: they belong to setup 'bits'"
            raise ValueError(f"setup {self.setup!r} needs {needs}")
        if self.carries != "all" and self.setup != "per-caption":
            raise ValueError(f"setup {self.setup!r}: carries = {self.carries!r} belongs to 'per-caption'")
        if self.shuffled and self.setup in ("none", "bits"):
            raise ValueError(f"setup {self.setup!r} has no unique numbers that could be shuffled")
        if self.compat == "published" and self.setup == "per-caption":
            raise ValueError("setup 'per-caption' was never published: leave compat out")
        if self.in_targets and not self.on_captions:
            raise ValueError(f"setup {self.setup!r} gives captions no numbers that targets could have")
        return self
