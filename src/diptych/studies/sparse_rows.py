"""The rows of chapter 3's studies: a dense encoder, and heads that make bags of terms of its rows.

Heads are called d2s-η-EXPANSION: ``d2s-1e-3-c+w``. Expansion is what captions may have besides their own
terms in training: ``0`` nothing, ``1`` anything, ``c`` anything when a draw per batch says so, ``c+w`` and each
term when a draw of its own does.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.studies.study import Row, Setting, SettingName

HOME = "d2s.table-3.1"
"""The study in whose folder all heads and their dense rows are."""

ETAS = ("1e-2", "1e-3", "1e-4", "1e-5")
"""η, the weight of the L1 regulariser, from the sparsest on."""

EXPANSIONS = ("0", "1", "c", "c+w")
REGULATED = "c+w"
"""The thesis's own method, which table 3.1 shows."""

DENSE = Row("dense", "Dense", "dense", home=HOME, given="dense")
"""What heads are trained on: trained here where the setting has a recipe, or given."""


def head_name(eta: str, expansion: str = REGULATED) -> str:
    """What a head's row is called."""
    return f"d2s-{eta}-{expansion}"


def head_row(eta: str, expansion: str = REGULATED) -> Row:
    """A head on the dense rows."""
    return Row(
        head_name(eta, expansion),
        f"D2S, η = {eta}, exp = {expansion.replace('+', ' + ')}",
        base=DENSE.name,
        home=HOME,
        sparsify={"loss.eta": float(eta), "expansion.mode": expansion},
    )


# How it is trained ------------------------------------------------------------------------------

_PAPER = Setting(
    description="the paper's: rows of BLIP or ALBEF, a DistilBERT vocabulary and head, 200 epochs of 512 pairs",
    recipes={},
    sparsify={
        "vocabulary.source": "distilbert-base-uncased",
        "expansion.schedule": "published",
        "loss.temperature": 0.001,
        "training.epochs": 200,
        "training.batch_size": 512,
        "training.learning_rate": 5e-5,
        "training.projection_learning_rate": 1e-3,
        "training.select": "best",
    },
    search={"items": 123_287, "queries": 1024},
    time="two hours of an A100 per head in the thesis",
)
# Of a weaker encoder the best scores lie closer together: at a thousandth its targets would be single pictures.
_SMALL = {
    "loss.temperature": 0.02,
    "training.epochs": 30,
    "training.learning_rate": 1e-3,
    "training.projection_learning_rate": 1e-3,
}
_DATA = Setting(
    description="for a processor: a frozen MobileNetV2 and a GRU, a vocabulary learned from the captions, 30 epochs",
    recipes={"dense": "d2s.data.dense.toml"},
    sparsify={**_SMALL, "vocabulary.size": 4000, "head.width": 256, "training.batch_size": 512},
    search={"items": 123_287, "queries": 1024},
    time="on Flickr8k 20 minutes of a processor core for the dense rows, two to three per head",
)
_QUICK = Setting(
    description="scenes: a small network trained end to end, heads of width 64 over 400 pieces, 30 epochs",
    recipes={"dense": "d2s.quick.dense.toml"},
    sparsify={**_SMALL, "vocabulary.size": 400, "head.width": 64, "training.batch_size": 256},
    search={"items": 4000, "queries": 200},
    time="80 seconds of a processor core for the dense rows, 10 per head",
)
SETTINGS: Mapping[SettingName, Setting] = {"paper": _PAPER, "data": _DATA, "quick": _QUICK}
"""How chapter 3's rows are made."""

NOTES = (
    "Dense rows are given (--set dense=RUN, ENCODER or EMBEDDINGS) or, in the settings data and quick, "
    "trained here. Heads see them as they are, and no labels.",
    "Only captions ask for pictures here, as in the thesis. Where the dense rows are not BLIP's or ALBEF's, "
    "its numbers stand beside ours for orientation alone; whether rows that are given are theirs cannot be "
    "checked.",
    "In the settings data and quick the vocabulary is learned from the captions and the head begins with "
    "their terms' co-occurrence; --set sparsify.vocabulary.source=DISTILBERT takes a masked language "
    "model's.",
    "τ of the targets is 0.001 in the paper's setting and 0.02 in the others, whose encoders are weaker.",
    "Probabilities of expansion rise by 1 / epochs as the thesis says; in the paper's setting as in the "
    "published code, which reaches 1 after 95 % of the epochs. The published code draws for captions alone.",
    "The published loss: natural logarithms, the mean of both directions and η times the mean of both "
    "sides' L1.",
)
