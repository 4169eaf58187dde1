"""Protocols for any test set: all of it, or n folds."""

from __future__ import annotations

from diptych.evaluation.partitioning import PARTITIONS, Partition

FULL = PARTITIONS.add(
    Partition(
        name="full",
        description="the whole test set is one gallery",
        citation="Karpathy and Fei-Fei, CVPR 2015 (Flickr8k and Flickr30k: 1,000 images)",
    )
)

FOLDS = PARTITIONS.add(
    Partition(
        name="folds(n)",
        description="the images in their order, cut into n galleries of equal size; values averaged",
        citation="Karpathy and Fei-Fei, CVPR 2015 (as for COCO 1K)",
    )
)
