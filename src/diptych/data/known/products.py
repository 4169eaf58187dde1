"""Products: Fashion200k, Amazon Berkeley Objects, XMarket, and a catalogue of fashion."""

from __future__ import annotations

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size

_AUTHORS_OWN = "(read in the published code)"

KNOWN.add(
    KnownDataset(
        name="fashion200k",
        title="Fashion200k",
        description="about 200,000 pictures of dresses, tops, trousers, skirts and jackets with product descriptions",
        centric="object",
        citation="Han et al., Automatic Spatially-aware Fashion Concept Discovery, ICCV 2017",
        licence="The repository names no licence. Pictures and descriptions were taken from web shops and belong to "
        "them: treat as for research only, pass nothing on.",
        where=(("pictures and labels", "linked at https://github.com/xthan/fashion-200k"),),
        layout="""\
fashion200k/
├── labels/    dress_train_detect_all.txt, dress_test_detect_all.txt, … (five categories)
└── women/     dresses/…, tops/…, pants/…, skirts/…, jackets/…
""",
        readings=(
            Reading("fashion200k", "the files of labels and the folder of pictures"),
            Reading("retrieval-json", "the thesis authors' lists for X-VLM", "--images FOLDER"),
        ),
        forms=(Form("the files of labels", {"train": Size(172_049), "test": Size(29_789)}, binding=False),),
        thesis=(
            "prints 209,544 images, and splits by the dataset's authors",
            f"its csv has 201,838 rows, of which 172,049 have an index of their own {_AUTHORS_OWN}",
            "its X-VLM lists train on 142,260 images and test on a small file of 5,000 (read in the published "
            "configuration); its CLIP rows used the csv",
        ),
        notes=(
            "172,049 is the usual size of train; 29,789 for test is 201,838 − 172,049 and unverified. So a "
            "collection of another size is told, and not called incomplete",
        ),
        names=("fashion-200k",),
    )
)

KNOWN.add(
    KnownDataset(
        name="abo",
        title="Amazon Berkeley Objects",
        description="147,702 product listings with 398,212 pictures",
        centric="object",
        citation="Collins et al., ABO: Dataset and Benchmarks for Real-World 3D Object Understanding, CVPR 2022",
        licence="Creative Commons, named in the README beside the archives: copies of CC BY-NC 4.0 (no commercial "
        "use) and of CC BY 4.0 are about, so go by the one that came with yours. Credit for data and pictures: "
        "Amazon.com.",
        where=(
            ("listings", "abo-listings.tar at https://amazon-berkeley-objects.s3.amazonaws.com/index.html"),
            ("pictures", "abo-images-small.tar at the same place (at most 256 pixels a side)"),
        ),
        layout="""\
abo/
├── listings/metadata/    listings_0.json.gz … (16 files)
└── images/
    ├── metadata/         images.csv.gz
    └── small/            00/00000529.jpg …
""",
        readings=(
            Reading("abo", "listings and metadata of images: one picture and one description per listing"),
            Reading("retrieval-json", "the thesis authors' lists for X-VLM", "--images FOLDER/images/small"),
        ),
        forms=(
            Form(
                "the thesis authors' own",
                {"train": Size(48_693), "val": Size(10_127), "test": Size(10_210)},
                binding=False,
            ),
        ),
        thesis=(
            "prints 147,702 listings with 398,212 images, one image per listing, its description as the caption, "
            "and splits by the dataset's authors; there are none: it used its own, 48,693, 10,127 and 10,210 "
            f"{_AUTHORS_OWN}",
            "which field is the caption and how one picture was chosen is in no published code",
            "its X-VLM rows test on a small file of 5,000 images (read in the published configuration)",
        ),
        notes=("descriptions are in many languages",),
        names=("amazon-berkeley-objects",),
    )
)

KNOWN.add(
    KnownDataset(
        name="xmarket",
        title="XMarket",
        description="products of one shop in 18 markets and 16 categories: titles, attributes, category paths, "
        "addresses of pictures",
        centric="object",
        citation="Bonab et al., Cross-Market Product Recommendation, CIKM 2021",
        licence="Unverified: see the authors' page. Texts and pictures were taken from a shop's pages and belong to it "
        "and its sellers: treat as for research only, pass nothing on.",
        where=(
            (
                "metadata",
                "linked at https://xmrec.github.io (7.5 GB with ratings and reviews, which are not needed)",
            ),
            (
                "pictures",
                "by their addresses: diptych categories download FOLDER --out FOLDER/images --contact ADDRESS",
            ),
        ),
        layout="""\
xmarket/
├── metadata_us_Electronics.json.gz, metadata_us_Home_and_Kitchen.json.gz, …
└── images/    B00ABC1234.jpg …
""",
        readings=(
            Reading("xmarket", "files of metadata and the folder of pictures", "--reader-option market=us"),
        ),
        thesis=(
            "38,921 products of the US market in 5,471 categories on nine levels (34 most general, 4,100 "
            "most specific; a product's path has 2 to 9 levels, 4.63 on average); 228,368 attributes, 157,049 of them "
            "unique, 1 to 24 of a product",
            "which products, which split and which fields are attributes is in no published code; "
            "--reader-option attributes= offers them all",
        ),
        notes=(
            "pictures are not part of it, and addresses grow old: what could not be fetched is counted, and its "
            "products are kept without a picture",
            "ranks in a product's details name its category and are left out, as are reviews, ids and dates",
        ),
        names=("xmrec",),
        chapter=7,
    )
)

KNOWN.add(
    KnownDataset(
        name="fashion-products",
        title="Fashion Product Images (Param Aggarwal, from Myntra's catalogue)",
        description="catalogue pictures of clothes, shoes and accessories with titles, categories and attributes",
        centric="object",
        citation="Aggarwal, Fashion Product Images, Kaggle 2019",
        licence="Unverified. The pictures are a shop's catalogue pictures and belong to it: treat as for research "
        "only, pass nothing on.",
        where=(
            (
                "pictures and styles.csv",
                "https://www.kaggle.com/datasets/paramaggarwal/fashion-product-images-small",
            ),
        ),
        layout="""\
fashion/
├── dataset_fashion.json    Karpathy's form, made of styles.csv: one sentence (the title) per picture
└── images/                 1163.jpg …
""",
        readings=(
            Reading("karpathy", "a Karpathy-style JSON file made of styles.csv"),
            Reading("pairs", "a csv file with columns image and caption made of styles.csv"),
        ),
        notes=("it has no splits of its own, so no sizes are expected",),
    )
)
