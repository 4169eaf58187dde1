"""Sizes of the field's test sets: how many queries a printed share is likely to be a share of.

Sources: Karpathy and Fei-Fei, CVPR 2015 (splits of Flickr8k, Flickr30k and COCO); the counts of CUB-200,
ABO and Fashion200k are those of the files behind Hendriksen et al., ECIR 2023, whose splits are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class KnownSize:
    """One number of queries.

    Attributes:
        n: how many.
        kind: whether they are images or captions.
        what: of which part of which dataset.
    """

    n: int
    kind: Literal["images", "captions"]
    what: str


KNOWN_SIZES = (
    KnownSize(1_000, "images", "Flickr30k test"),
    KnownSize(5_000, "captions", "Flickr30k test"),
    KnownSize(1_014, "images", "Flickr30k val"),
    KnownSize(5_070, "captions", "Flickr30k val"),
    KnownSize(1_000, "images", "Flickr8k test"),
    KnownSize(1_000, "images", "a COCO 1K fold"),
    KnownSize(5_000, "images", "COCO test or val"),
    KnownSize(25_010, "captions", "COCO test or val"),
    KnownSize(25_000, "captions", "COCO test, five each"),
    KnownSize(2_938, "images", "CUB-200 val (ECIR 2023)"),
    KnownSize(2_856, "images", "CUB-200 test (ECIR 2023)"),
    KnownSize(10_127, "images", "ABO val (ECIR 2023)"),
    KnownSize(10_210, "images", "ABO test (ECIR 2023)"),
    KnownSize(5_000, "images", "small test files of ABO and Fashion200k (ECIR 2023)"),
)
"""The test sets by size; several have the same."""

_NAMES = {
    n: tuple(f"{one.kind} of {one.what}" for one in KNOWN_SIZES if one.n == n)
    for n in {one.n for one in KNOWN_SIZES}
}


def names_of(n: int) -> tuple[str, ...]:
    """What is known to have ``n`` queries, e.g. ``"images of Flickr30k val"``."""
    return _NAMES.get(n, ())
