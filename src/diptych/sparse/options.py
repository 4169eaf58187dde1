"""Options of turning dense embeddings into sparse ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from diptych.core.errors import RecipeError
from diptych.core.options import Options, parameter, parse_values
from diptych.data.source import OutOption, SplitOption

PUBLISHED = {"vocabulary.terms": "pieces", "loss.words": 0.0}  # the method as it is in its paper


class _Section(Options):
    model_config: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)


class VocabularyOptions(_Section):
    """The terms of the vocabulary."""

    # ``words``: whole words of the captions that say something, no others have weights; ``pieces``: everything that
    # captions consist of, punctuation, function words and parts of rare words too, as published
    terms: Literal["words", "pieces"] = "words"
    # a masked language model's folder or hub name, of whose WordPiece vocabulary terms are; else of the captions
    source: str | None = Field(None, min_length=1)
    size: int = Field(4000, ge=8)  # the most terms that a learned vocabulary has
    min_count: int = Field(2, ge=1)  # how often a word, or a pair of pieces, must occur in the captions
    # of a model's pieces keep only special terms and those of the training captions; of its words only those are taken
    occurring: bool = False


class HeadOptions(_Section):
    """The projection from d to |V| (thesis ch. 3, Eq. 3.4–3.5)."""

    width: int = Field(256, ge=1, le=1 << 16)  # ω, between the two linear maps; a given model's own width
    shared: bool = True  # one head for images and captions; else one each
    bias: bool = True  # the published head's linear maps have biases, those of the thesis's equations do not
    eps: float = Field(1e-12, gt=0)  # of the layer norm (published: the same)
    # of the second map: a masked language model's vocabulary embeddings (``mlm``), the terms' co-occurrence in training
    # captions, or at random; ``auto``: ``mlm`` where a model is given, else ``cooccurrence``
    start: Literal["auto", "mlm", "cooccurrence", "random"] = "auto"


class ExpansionOptions(_Section):
    """The terms that a caption's vector may have in training (thesis, Algorithm 1)."""

    # ``0``: its own terms only, in training and in use; ``1``: any; ``c``: its own, and others when a draw per batch
    # says so, with a probability that rises from 0 to 1; ``c+w``: and each term when a draw of its own says so, with a
    # probability that rises from 1 − df to 1.
    mode: Literal["0", "1", "c", "c+w"] = "c"
    # ``prose``: draws are about other terms than the caption's own; ``printed``: as Algorithm 1 is printed, where the
    # caption's own terms are multiplied by the terms' draws too.
    form: Literal["prose", "printed"] = "prose"
    # ``thesis``: + 1 / epochs after each epoch (Eq. 3.6); ``published``: + 1 / (0.95 · epochs).
    schedule: Literal["thesis", "published"] = "thesis"


class LossOptions(_Section):
    """The distillation loss and its regulariser (thesis Eq. 3.7)."""

    # τ, which dense scores are divided by to make targets (published: 0.001, for BLIP and ALBEF).
    temperature: float = Field(0.02, gt=0)
    eta: float = Field(5e-3, ge=0)  # η, the regulariser's weight after its warm-up (published: 1e-5 to 1e-2)
    # λ of Eq. 3.7, which then is taken literally: (1 − λ) of the sum of both directions in bits and λη of the sum of
    # both sides' regularisers. None: as published, the mean of both directions in nats and η times the mean.
    weight: float | None = Field(None, ge=0, le=1)
    # how much it counts that image and caption predict the caption's terms, a soft-max over all (published: 0)
    words: float = Field(1.0, ge=0)
    # ``l1``: the mean over rows of the sum of weights; ``flops``: the sum over terms of the squared mean weight
    # (Paria et al. 2020).
    regulariser: Literal["l1", "flops"] = "l1"
    warmup: float = Field(0.2, ge=0, le=1)  # the share of all steps in which η rises, quadratically, from 0


class OptimisationOptions(_Section):
    """AdamW, with a linear rise and fall of the learning rates."""

    epochs: int = Field(30, ge=1)  # passes over all pairs of a caption and its image (published: 200)
    batch_size: int = Field(512, ge=2)  # several captions of one image may meet, soft targets know it
    learning_rate: float = Field(1e-3, gt=0)  # of layer norm and second map (published: 5e-5, from a model's)
    projection_learning_rate: float = Field(1e-3, gt=0)  # of the first map
    weight_decay: float = Field(0.0, ge=0)
    warmup: float = Field(0.2, ge=0, le=1)  # the share of all steps in which the rates rise
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    compiled: bool = False  # ``torch.compile`` the step
    # the epoch that is kept: best by validation recall after the warm-up
    select: Literal["last", "best"] = "last"
    checkpoint_minutes: float = Field(1.0, ge=0)  # how much work a kill can lose


class SparsifyOptions(_Section):
    """Everything about one head; with the dense rows it was trained on it can be made again."""

    seed: int = Field(0, ge=0)  # of the head's fresh weights, the order of pairs and all draws
    vocabulary: VocabularyOptions = Field(default_factory=VocabularyOptions)
    head: HeadOptions = Field(default_factory=HeadOptions)
    expansion: ExpansionOptions = Field(default_factory=ExpansionOptions)
    loss: LossOptions = Field(default_factory=LossOptions)
    training: OptimisationOptions = Field(default_factory=OptimisationOptions)

    @model_validator(mode="after")
    def _has_a_source(self) -> SparsifyOptions:
        if self.head.start == "mlm" and self.vocabulary.source is None:
            raise ValueError("head.start = mlm needs vocabulary.source, a masked language model")
        if self.vocabulary.occurring and self.vocabulary.source is None:
            raise ValueError(
                "vocabulary.occurring needs vocabulary.source, the model whose vocabulary it is of"
            )
        return self


def sparsify_options(values: Mapping[str, Any]) -> SparsifyOptions:
    """The options that dotted keys give, e.g. ``{"loss.eta": 1e-4, "expansion.mode": "c"}``."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, dot, name = key.partition(".")
        if not dot:
            nested[section] = value
        elif isinstance(nested.setdefault(section, {}), dict):
            nested[section][name] = value
        else:
            raise RecipeError(f"options of the head have no place for {key!r}", "e.g. loss.eta=1e-4")
    return SparsifyOptions.read(nested, "options of the head", RecipeError)


class TrainOptions(OutOption):
    """The training data of a head, and its training."""

    eta: float | None = parameter(
        None, "η: how much sparsity counts, 1e-2 (few terms) to 1e-5 (many).", ge=0, default="5e-3"
    )
    expansion: str | None = parameter(
        None, "A caption's terms: 0 its own, 1 any, c and c+w others gradually.", default="c"
    )
    mlm: str | None = parameter(
        None,
        "A masked language model, folder or hub name, whose vocabulary and embeddings the head begins "
        "with; else both are learned from the training captions.",
    )
    set_: list[str] = parameter([], "KEY=VALUE for the head, e.g. training.epochs=100. Repeatable.")
    train: str = parameter("train", "The split that is learned from.")
    validation: str = parameter("val", "The split measured during training, if there is one.")
    test: str = parameter("test", "The split measured in the end, if there is one.")
    word_vectors: Path | None = parameter(
        None, "For Semantic@k: an .npz of words and vectors.", default="the masked language model's"
    )
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")

    def head(self) -> SparsifyOptions:
        short = {"loss.eta": self.eta, "expansion.mode": self.expansion, "vocabulary.source": self.mlm}
        given = {key: value for key, value in short.items() if value is not None}
        return sparsify_options(parse_values(self.set_, "--set") | given)


class SheetOptions(SplitOption):
    """Of which split, and where it is drawn."""

    sheet: Path | None = parameter(None, "Draw a .png, .jpg or .html of it.")


class TermsOptions(SheetOptions):
    """Options of what is shown."""

    what: list[str] = parameter(
        [], "Sentences, paths of images, or ids of the split; images of the split without any.", argument=True
    )
    k: int = parameter(10, "How many terms.", "-k", ge=1)
    count: int = parameter(10, "How many images of the split.", "-n", ge=1)


class ExplainOptions(SheetOptions):
    """Options of what is explained."""

    k: int = parameter(3, "How many of the best are explained.", "-k", ge=1)
    item: str | None = parameter(None, "The id of one image or caption, instead of the best.")
    of: Literal["images", "texts"] | None = parameter(None, "Items to find.", default="the other side")
    terms: int = parameter(8, "How many terms of each.", ge=1)
