"""Flickr30k: Karpathy's splits and those of Flickr30k Entities."""

from __future__ import annotations

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size

_LICENCE = (
    "For non-commercial research and education. The pictures belong to the people who put them on Flickr, and "
    "their use must abide by Flickr's terms; the authors of the dataset do not own them. Do not pass pictures on."
)

KNOWN.add(
    KnownDataset(
        name="flickr30k",
        title="Flickr30k",
        description="31,783 photographs of people doing things, five captions each",
        centric="scene",
        citation="Young, Lai, Hodosh and Hockenmaier, From image descriptions to visual denotations, TACL 2014",
        licence=_LICENCE,
        where=(
            ("pictures", "by the form at https://shannon.cs.illinois.edu/DenotationGraph/ (about 4.4 GB)"),
            (
                "Karpathy's captions and splits",
                "dataset_flickr30k.json in "
                "https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip",
            ),
            ("the authors' captions", "results_20130124.token, with the pictures"),
            (
                "the other splits",
                "https://github.com/BryanPlummer/flickr30k_entities (train.txt, val.txt, test.txt)",
            ),
        ),
        layout="""\
flickr30k/
├── flickr30k-images/         1000092795.jpg … (31,783)
├── dataset_flickr30k.json    Karpathy's form; or else:
├── results_20130124.token    the authors' form, with
└── flickr30k_entities/       train.txt, val.txt, test.txt
""",
        readings=(
            Reading("karpathy", "dataset_flickr30k.json", "--images FOLDER/flickr30k-images"),
            Reading("flickr30k", "results_20130124.token (or results.csv) with lists of splits"),
            Reading(
                "retrieval-json",
                "flickr30k_train.json, flickr30k_val.json and flickr30k_test.json of ALBEF, X-VLM and BLIP",
                "--images FOLDER",
            ),
        ),
        forms=(
            Form(
                "Karpathy",
                {
                    "train": Size.of_each(29_000, 5),
                    "val": Size.of_each(1_014, 5),
                    "test": Size.of_each(1_000, 5),
                },
            ),
            Form(
                "Flickr30k Entities",
                {
                    "train": Size.of_each(29_783, 5),
                    "val": Size.of_each(1_000, 5),
                    "test": Size.of_each(1_000, 5),
                },
            ),
        ),
        thesis=(
            "prints 31,783 images: 29,783 to train, 1,000 to validate and 1,000 to test, and says that these are "
            "Karpathy's splits; the numbers are those of Flickr30k Entities. Karpathy's have 31,014 images: "
            "29,000, 1,014 and 1,000",
            "says one caption of each, drawn at random; its CLIP rows used the first, its X-VLM rows all five "
            "(read in the published code and logs)",
            "its CLIP rows fit 1,014 images, the size of Karpathy's val (by the arithmetic of the printed numbers)",
        ),
        names=("f30k",),
    )
)

KNOWN.add(
    KnownDataset(
        name="flickr8k",
        title="Flickr8k",
        description="8,000 photographs of people and animals, five captions each",
        centric="scene",
        citation="Hodosh, Young and Hockenmaier, Framing Image Description as a Ranking Task, JAIR 47, 2013",
        licence=_LICENCE,
        where=(
            ("pictures and captions", "by the form at https://hockenmaier.cs.illinois.edu/8k-pictures.html"),
            (
                "Karpathy's form",
                "dataset_flickr8k.json in "
                "https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip",
            ),
        ),
        layout="""\
flickr8k/
├── Flicker8k_Dataset/              1000268201_693b08cb0e.jpg … (8,091)
├── dataset_flickr8k.json           Karpathy's form; or else:
├── Flickr8k.token.txt              the authors' form, with
└── Flickr_8k.trainImages.txt, Flickr_8k.devImages.txt, Flickr_8k.testImages.txt
""",
        readings=(
            Reading("karpathy", "dataset_flickr8k.json", "--images FOLDER/Flicker8k_Dataset"),
            Reading("flickr30k", "Flickr8k.token.txt with its lists of splits"),
        ),
        forms=(
            Form(
                "the authors', and Karpathy's",
                {
                    "train": Size.of_each(6_000, 5),
                    "val": Size.of_each(1_000, 5),
                    "test": Size.of_each(1_000, 5),
                },
            ),
        ),
        notes=(
            "8,091 pictures are distributed and 8,092 are captioned (2258277193_586949ec62.jpg.1 is not there); "
            "the splits name 8,000",
        ),
        names=("f8k",),
    )
)
