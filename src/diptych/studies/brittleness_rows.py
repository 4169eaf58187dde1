"""The rows, columns and settings of thesis chapter 5's retrieval tables: models that are given, and a control."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.studies.study import Column, Row, Setting, SettingName
from diptych.studies.verdict import Evidence

HOME = "brittleness.table-5.3"
"""The study whose folder all three have their rows in: what one has made, the others find."""

NONE = "none"

FINER = "-fg"
"""Ends the name of a collection of finer captions of the same pictures."""

SHUFFLES = (
    "shuffle-nouns-and-adjectives",
    "shuffle-all-words",
    "shuffle-all-but-nouns-and-adjectives",
    "shuffle-within-trigrams",
    "shuffle-trigrams",
)

GROUPS = {
    "distraction": ("distraction-true", "distraction-false"),
    "synonyms": ("synonym-noun", "synonym-adjective"),
    "typos": ("character-swap", "missing-character", "extra-character", "nearby-character"),
}
"""Kinds of which the thesis prints the mean of their members' sums."""

KINDS = (*SHUFFLES, *GROUPS)
THIRTEEN = (*SHUFFLES, *(name for members in GROUPS.values() for name in members))

# Rows -----------------------------------------------------------------------------------------------

CONTROL = "bag"
_MODELS = {"align": "ALIGN", "altclip": "AltCLIP", "clip": "CLIP", "groupvit": "GroupViT"}
_OURS = ("encoder", CONTROL)

ROWS = (
    *(Row(name, label, name, home=HOME, given=name, pretrained=True) for name, label in _MODELS.items()),
    Row(
        "encoder",
        "trained encoder",
        "encoder",
        home=HOME,
        given="encoder",
        pretrained=True,
        extra="not in the paper: any dual encoder, so that the suite says something where none of the four is",
    ),
    Row(
        CONTROL,
        "bag of words",
        CONTROL,
        home=HOME,
        given=CONTROL,
        pretrained=True,
        extra="not in the paper: the mean of word embeddings, which cannot see order. A check of the suite: a "
        "shuffle that moves it is no shuffle",
    ),
)

_PICTURES = {"n_train": 0, "n_val": 0, "n_test": 200, "size": 32, "seed": 7}

SETTINGS: dict[SettingName, Setting] = {
    "paper": Setting(
        description="four published encoders by their names on Hugging Face (--set clip=FOLDER for one that is "
        "here), measured as published: its perturbations, from text all pictures of the folder, DCG_CM by CLIP",
        recipes={},
        given={
            "align": "hf:kakaobrain/align-base",
            "altclip": "hf:BAAI/AltCLIP",
            "clip": "hf:openai/clip-vit-base-patch32",
            "groupvit": "hf:nvidia/groupvit-gcc-yfcc",
        },
        measure={"compat": "published", "gallery": "folder", "relevance": "hf:openai/clip-vit-base-patch32"},
        rows=tuple(_MODELS),
        time="GPU hours; 40,504 images of COCO and 31,783 of Flickr30k, and 13 times the captions, per model",
    ),
    "data": Setting(
        description="encoders that are given (--set encoder=RUN --set bag=RUN, or any of the four)",
        recipes={},
        time="minutes; as long as the encoders take, on a processor for a thousand images and small ones",
    ),
    "quick": Setting(
        description="a small network and the bag-of-words control, trained on generated scenes; asked with coarse "
        "and with finer captions of other scenes",
        recipes={"encoder": "brittleness.quick.encoder.toml", CONTROL: "brittleness.quick.bag.toml"},
        rows=_OURS,
        collections={
            "scenes": {"scenes": _PICTURES},
            "scenes-fg": {"scenes": {**_PICTURES, "finer": 2}},
        },
        time="2 min; on a processor",
    ),
}

# Columns --------------------------------------------------------------------------------------------

CLEAN_COLUMNS = tuple(
    Column(name, decimals=2)
    for name in (
        *("i2t R@1", "i2t R@5", "i2t R@10", "i2t DCG_CM@10"),
        *("t2i R@1", "t2i R@5", "t2i R@10", "t2i DCG_CM@10"),
        *("i2t rsum", "t2i rsum"),
    )
)

_SHORT = {
    "shuffle-nouns-and-adjectives": "N&A",
    "shuffle-all-words": "all words",
    "shuffle-all-but-nouns-and-adjectives": "all but N&A",
    "shuffle-within-trigrams": "in trigrams",
    "shuffle-trigrams": "trigrams",
}
RSUM_COLUMNS = tuple(Column(name, decimals=2, short=_SHORT.get(name, "")) for name in (NONE, *KINDS))
JACCARD_COLUMNS = tuple(Column(name, decimals=4) for name in ("decreased", "increased", "unchanged"))

# Notes ----------------------------------------------------------------------------------------------

_HOW = (
    "What is measured, and how, is --set measure.KEY=VALUE: compat (none, or published: the published code's "
    "perturbations), gallery (split, or folder: from text among every .jpg beside the pictures), relevance (a model "
    "whose similarity is DCG_CM's gain instead of the evaluated one's), language, wordnet, nltk_data, seeds, split. "
    "Without a word said: mathematically right, in settings data and quick; as published in the setting paper.",
    "The paper's collections are coco, coco-fg, flickr30k and flickr30k-fg: --data coco=…, --data coco-fg=…. Any "
    "NAME and NAME-fg are a pair, coarse and finer.",
)
NOTES = (
    *_HOW,
    "Distraction, synonyms (the thesis's lexical variation) and typos are plain means of the sums of their kinds. "
    "How the thesis averaged is not said. In the published results ALIGN's two synonym runs on Flickr30k equal its "
    "unperturbed run, so their mean would be 161.98, where 157.79 is printed.",
    "Synonyms are true to the part of speech here; compat=published takes the first lemma of any.",
)
CLEAN_NOTES = (
    *_HOW,
    "A printed cell is held against what was counted as published: captions found among the first k over min(k, 5) "
    "from pictures, in the rotated columns (printed R@1, R@5, R@10 are R@5, R@10, R@1), and DCG_CM by the relevance "
    "model where one is given. The right number, any of an image's captions and the model's own similarity, stands "
    "below it.",
)


def pairs_of(evidence: Evidence) -> list[tuple[str, str]]:
    """Collections with their finer ones."""
    names = {name.lower(): name for name in evidence.centric}
    return [(name, names[low + FINER]) for low, name in names.items() if low + FINER in names]


def models_of(evidence: Evidence) -> list[str]:
    """The rows that what is said of models is said of."""
    return [row for row in evidence.figures if row != CONTROL]


def relative_change(evidence: Evidence, row: str, collection: str, column: str) -> float | None:
    """How far a row's sum under a perturbation is from its sum without one; None with one missing or 0."""
    clean, changed = (evidence.figure(row, f"{collection} {name}") for name in (NONE, column))
    if clean is None or changed is None or clean.mean <= 0:
        return None
    return changed.mean / clean.mean - 1


def share_text(value: float) -> str:
    """``+1.5 %`` of 0.015."""
    return f"{100 * value:+.1f} %"


def listed(cases: Sequence[str], most: int = 6) -> str:
    """Some cases by name, the others counted."""
    more = len(cases) - most
    return "; ".join([*cases[:most], *([f"and {more} more"] if more > 0 else [])])
