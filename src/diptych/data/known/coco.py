"""MS COCO with Karpathy's splits."""

from __future__ import annotations

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size


def _size(images: int, captions: int) -> Size:
    return Size(images, {captions: "all", 5 * images: "the first five of each"})


_PARTS = {"val": _size(5_000, 25_010), "test": _size(5_000, 25_010)}

KNOWN.add(
    KnownDataset(
        name="coco",
        title="Microsoft COCO (2014) with Karpathy's splits",
        description="123,287 photographs of everyday scenes, five captions each",
        centric="scene",
        citation="Lin et al., Microsoft COCO: Common Objects in Context, ECCV 2014; splits: Karpathy and "
        "Fei-Fei, Deep Visual-Semantic Alignments for Generating Image Descriptions, CVPR 2015",
        licence="Captions: CC BY 4.0, of the COCO Consortium. Pictures: they belong to the people who put them "
        "on Flickr, each under a licence of its own (some allow no commercial use, some no changes); the "
        "consortium does not own them and passes no rights on.",
        where=(
            (
                "pictures",
                "http://images.cocodataset.org/zips/train2014.zip and …/val2014.zip (about 13 and 6 GB)",
            ),
            (
                "captions and splits",
                "dataset_coco.json in https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip",
            ),
            ("terms", "https://cocodataset.org/#termsofuse"),
        ),
        layout="""\
coco/
├── dataset_coco.json
└── images/
    ├── train2014/   COCO_train2014_000000000009.jpg … (82,783)
    └── val2014/     COCO_val2014_000000000042.jpg … (40,504)
""",
        readings=(
            Reading("karpathy", "dataset_coco.json"),
            Reading(
                "retrieval-json",
                "coco_train.json, coco_val.json and coco_test.json of ALBEF, X-VLM and BLIP",
                "--images FOLDER/images",
            ),
        ),
        forms=(
            Form("Karpathy, restval in train", {"train": _size(113_287, 566_747), **_PARTS}),
            Form(
                "Karpathy, restval left out of train",
                {"train": _size(82_783, 414_113), "restval": _size(30_504, 152_634), **_PARTS},
            ),
        ),
        thesis=(
            "prints 123,287 images: 113,287 to train, 5,000 to validate and 5,000 to test, and one caption of "
            "each, drawn at random",
            "its X-VLM rows were made with all 25,010 test captions, its CLIP rows with one of each (read in "
            "the published code and logs)",
        ),
        notes=(
            "the test split has 25,010 captions: nine images have a sixth or seventh. Tables that say 25,000 "
            "keep the first five of each (--reader-option max_captions=5). The 1K protocol is the mean of five "
            "folds of 1,000 images",
            "further positives: diptych evaluate --positives cxc:FOLDER or eccv:FOLDER",
        ),
        names=("mscoco", "ms-coco"),
    )
)
