"""What a trained model of categories and products is made of, and how it is trained."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from diptych.commerce.category_to_image.features.rows import MODALITIES, Modality
from diptych.core.options import Options


class TrainOptions(Options):
    """Options of one training; the thesis's own are :meth:`published`.

    Attributes:
        modalities: what a product is represented by, in the order of :data:`MODALITIES`.
        setting: which category a product is paired with; see :mod:`diptych.commerce.catalogue.catalogue`.
        query: a category's text: its ``name``, as published, its ``path``, or ``unique``: the path where names repeat.
        resample: draw a product's category anew in every epoch, where the setting draws.
        attributes: how a product's attributes become one row: their ``mean``, or ``attention``.
        hidden: width of the two hidden layers of each head.
        width: d of the shared space.
        normalise: where a hidden layer has its layer norm: ``before`` or ``after`` the GELU.
        dropout: after each hidden layer.
        modality_dropout: share of products whose row of one modality is hidden in a training step, so that a
            product that lacks it is no surprise.
        temperature: τ, or where learning it starts.
        learn_temperature: train log(1/τ).
        balance: λ of Eq. 7.9, the weight of product→category.
        duplicates: products of the same category text in a batch are each other's ``negatives``, as published, or
            ``masked`` out of both sums, which is the same as counting them as further positives.
        zero_shot: share of a score that the frozen text encoder's own cosine of category and title has; the rest
            is the trained one's. 0 is the thesis's model; with some, categories that training never saw keep what the
            encoder knew of them. Models without titles have none of it.
        tree_distance: strength of the tree-aware loss: 0 for the plain one.
        epochs: how many times every product is seen.
        batch_size: pairs at once.
        learning_rate: of AdamW.
        weight_decay: of AdamW.
        patience: stop after so many epochs without a better validation measure; None trains all epochs.
        seed: of weights, order and draws.
    """

    modalities: tuple[Modality, ...] = MODALITIES
    setting: str = "most-specific"
    query: Literal["name", "path", "unique"] = "name"
    resample: bool = False
    attributes: Literal["mean", "attention"] = "mean"
    hidden: int = Field(512, ge=1)
    width: int = Field(256, ge=1)
    normalise: Literal["before", "after"] = "before"
    dropout: float = Field(0.1, ge=0, lt=1)
    modality_dropout: float = Field(0.1, ge=0, lt=1)
    temperature: float = Field(0.07, gt=0)
    learn_temperature: bool = True
    balance: float = Field(0.5, ge=0, le=1)
    duplicates: Literal["negatives", "masked"] = "masked"
    zero_shot: float = Field(0.0, ge=0, lt=1)
    tree_distance: float = Field(0.0, ge=0)
    epochs: int = Field(30, ge=1)
    batch_size: int = Field(128, ge=2)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-3, ge=0)
    patience: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.modalities or list(self.modalities) != [
            one for one in MODALITIES if one in self.modalities
        ]:
            raise ValueError(f"modalities are some of {', '.join(MODALITIES)}, each once and in this order")
        return self

    @property
    def share_of_zero_shot(self) -> float:
        """``zero_shot`` where titles stand for a product, else 0."""
        return self.zero_shot if "title" in self.modalities else 0.0

    @property
    def model(self) -> str:
        """``clip-`` and the letters of the modalities as the thesis orders them: i, t, a."""
        return "clip-" + "".join(one[0] for one in self.modalities)

    @classmethod
    def published(cls, modalities: tuple[Modality, ...] = MODALITIES, setting: str = "most-specific") -> Self:
        """Section 7.4.2: τ = 1, λ = 0.5, 30 epochs, batches of 8 for the most general categories, else of 128.

        What the chapter leaves out is ours: widths, rate and decay (those of the authors' other code), dropout 0.
        """
        return cls(
            modalities=modalities,
            setting=setting,
            dropout=0.0,
            modality_dropout=0.0,
            temperature=1.0,
            learn_temperature=False,
            duplicates="negatives",
            batch_size=8 if setting == "most-general" else 128,
        )
