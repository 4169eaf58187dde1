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


KNOWN.add(
    KnownDataset(
        name="conceptual-captions",
        title="Conceptual Captions (CC3M) and Conceptual 12M (CC12M)",
        description="3.3 and about 12 million addresses of pictures on the web, one caption each, made of alt-texts",
        centric=None,
        citation="Sharma, Ding, Goodman and Soricut, Conceptual Captions, ACL 2018; Changpinyo, Sharma, Ding and "
        "Soricut, Conceptual 12M, CVPR 2021",
        licence="Captions and addresses: free for any purpose, with Google named as the source. Pictures: they "
        "belong to whoever put them on the web, are not distributed, and disappear over time.",
        where=(
            ("CC3M", "https://ai.google.com/research/ConceptualCaptions/"),
            ("CC12M", "https://github.com/google-research-datasets/conceptual-12m (cc12m.tsv, 2.5 GB)"),
            (
                "pictures",
                "from the addresses, by a downloader such as img2dataset, which writes webdataset shards",
            ),
        ),
        layout="""\
cc3m/
├── Train_GCC-training.tsv               caption<TAB>address; cc12m.tsv has the address first
├── Validation_GCC-1.1.0-Validation.tsv
└── images/                              what could be fetched; or
    00000.tar, 00001.tar, …              shards of pictures with their captions
""",
        readings=(
            Reading("captions-tsv", "tables of captions and addresses, with pictures that may be missing"),
            Reading("webdataset", "shards (.tar) of pictures and captions"),
        ),
        forms=(Form("CC3M, all addresses", {"train": Size(3_318_333), "val": Size(15_840)}, binding=False),),
        notes=(
            "of the addresses a part is dead, and more every year: say how many pictures were there with every "
            "number that comes of them",
            "CC12M has about 12.4 million pairs (the exact number is unverified) and no splits",
        ),
        names=("cc3m", "cc12m", "conceptual-12m", "gcc"),
    )
)


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


_CITATION = "Chen, Yao and Jin, Rethinking Benchmarks for Cross-modal Image-text Retrieval, SIGIR 2023"
_REPOSITORY = "https://github.com/cwj1412/MSCOCO-Flikcr30K_FG (folder Annotations)"
_LICENCE = (
    "Captions: the repository names no licence; ask its authors before anything but research. Pictures: those "
    "of {}, under its terms (diptych data {})."
)
_USED = "the thesis replaces captions only (chapter 5); the larger pools of pictures that come with them are not read"


def _declare(name: str, title: str, of: str, images: int, file: str, names: tuple[str, ...]) -> None:
    KNOWN.add(
        KnownDataset(
            name=name,
            title=f"{title}-FG: {title}'s test split with fine-grained captions",
            description=f"the {images:,} test pictures of {title}, five refined captions each",
            centric="scene",
            citation=_CITATION,
            licence=_LICENCE.format(title, of),
            where=(("captions", _REPOSITORY), ("pictures", f"diptych data {of}")),
            layout=f"""\
{name}/
├── {file}
└── images/    the pictures of {title}, or a link to them
""",
            readings=(
                Reading(
                    "fine-grained",
                    file,
                    f"--reader-option karpathy={of}/dataset_{of}.json",
                    file,
                ),
            ),
            forms=(Form("test split alone", {"test": Size.of_each(images, 5)}),),
            notes=(
                "captions are in lower case, without a full stop",
                "with karpathy=FILE they have the ids of Karpathy's sentences, in their order, and the same rows",
                _USED,
            ),
            names=names,
        )
    )


_declare("coco-fg", "MS COCO", "coco", 5_000, "MSCOCO_FG_ann.json", ("mscoco-fg",))
_declare("flickr30k-fg", "Flickr30k", "flickr30k", 1_000, "Flickr30K_FG_ann.json", ("f30k-fg",))


_FLICKR30K_LICENCE = (
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
        licence=_FLICKR30K_LICENCE,
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
        licence=_FLICKR30K_LICENCE,
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
