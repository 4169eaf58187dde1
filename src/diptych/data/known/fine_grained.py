"""The fine-grained captions of two test splits: COCO-FG and Flickr30k-FG."""

from __future__ import annotations

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size

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
