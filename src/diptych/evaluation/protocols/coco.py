"""The two protocols of COCO's 5,000 test images in Karpathy's split."""

from __future__ import annotations

from diptych.core.errors import DataError
from diptych.evaluation.partitioning import PARTITIONS, Partition
from diptych.metrics.ground_truth import GroundTruth

_IMAGES = 5_000
_LEAST_TEXTS = 25_000  # 25,010 with all captions; 25,000 with the first five of each image
_CITATION = "Karpathy and Fei-Fei, CVPR 2015; Faghri et al., VSE++, BMVC 2018"


def _check(ground_truth: GroundTruth) -> None:
    if ground_truth.n_images != _IMAGES or ground_truth.n_texts < _LEAST_TEXTS:
        raise DataError(
            f"the COCO test split has {_IMAGES:,} images and at least {_LEAST_TEXTS:,} captions, "
            f"got {ground_truth.n_images:,} images and {ground_truth.n_texts:,} captions",
            "give the whole Karpathy test split, or use the protocol 'full' or 'folds(n)'",
        )


COCO_5K = PARTITIONS.add(
    Partition(
        name="coco-5k",
        description="all 5,000 COCO test images and their captions are one gallery",
        citation=_CITATION,
        check=_check,
    )
)

COCO_1K = PARTITIONS.add(
    Partition(
        name="coco-1k",
        description="the COCO test images in their order, cut into 5 galleries of 1,000; values averaged",
        citation=_CITATION,
        count=5,
        check=_check,
    )
)
