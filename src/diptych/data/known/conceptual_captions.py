"""Conceptual Captions (CC3M) and Conceptual 12M: addresses of pictures with their alt-texts."""

from __future__ import annotations

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size

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
