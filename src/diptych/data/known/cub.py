"""CUB-200: birds, described."""

from __future__ import annotations

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size

KNOWN.add(
    KnownDataset(
        name="cub",
        title="Caltech-UCSD Birds 200 (2011) with the captions of Reed et al.",
        description="11,788 photographs of 200 species of birds, ten captions each",
        centric="object",
        citation="Wah, Branson, Welinder, Perona and Belongie, The Caltech-UCSD Birds-200-2011 Dataset, 2011 (the "
        "thesis cites the first edition, Welinder et al. 2010); captions: Reed, Akata, Schiele and Lee, Learning "
        "Deep Representations of Fine-grained Visual Descriptions, CVPR 2016",
        licence="For non-commercial research and education. The pictures were found on the web and belong to their "
        "photographers; Caltech does not own them. The captions come without a licence of their own.",
        where=(
            (
                "pictures and splits",
                "CUB_200_2011.tgz at https://www.vision.caltech.edu/datasets/cub_200_2011/",
            ),
            ("captions", "cvpr2016_cub, linked at https://github.com/reedscot/cvpr2016"),
        ),
        layout="""\
cub/
├── CUB_200_2011/
│   ├── images.txt, image_class_labels.txt, classes.txt, train_test_split.txt
│   └── images/         001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg … (11,788)
└── cvpr2016_cub/
    └── text_c10/       001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.txt … (ten lines each)
""",
        readings=(
            Reading("cub", "the folder of CUB_200_2011 and the captions beside it"),
            Reading(
                "retrieval-json",
                "the thesis authors' lists for X-VLM: one file per split, its name ends in train, val or test",
                "--images FOLDER/CUB_200_2011/images",
            ),
        ),
        forms=(
            Form(
                "the authors' train_test_split.txt",
                {"train": Size.of_each(5_994, 10), "test": Size.of_each(5_794, 10)},
            ),
            Form(
                "the thesis authors' own, in three parts",
                {
                    "train": Size.of_each(5_994, 10),
                    "val": Size.of_each(2_938, 10),
                    "test": Size.of_each(2_856, 10),
                },
            ),
        ),
        thesis=(
            "prints 11,788 images, one caption of each, and splits by the dataset's authors; what was run is the "
            "thesis authors' own division of the test part, 2,938 and 2,856 (read in the published lists)",
            "its CLIP rows fit 2,938 images, the part to validate (by the arithmetic of the printed numbers)",
        ),
        notes=(
            "the three parts are read with --reader-option split_file=FILE.csv (columns of file names and of "
            "splits); the file is not distributed here",
        ),
        names=("cub-200", "cub-200-2011", "cub200"),
    )
)
