"""Options of a training of category and product heads; the thesis's own are :meth:`TrainOptions.published`."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from diptych.commerce.category_to_image.features import MODALITIES, Modality
from diptych.core.options import Options


class TrainOptions(Options):
    """Options of one training."""

    modalities: tuple[Modality, ...] = MODALITIES  # what represents a product, in this order
    setting: str = "most-specific"  # the category of a product: see diptych.commerce.catalogue
    # A category's text: its name, as published, its whole path, or unique: the path where names repeat.
    query: Literal["name", "path", "unique"] = "name"
    resample: bool = False  # draw a product's category anew in every epoch, where the setting draws
    attributes: Literal["mean", "attention"] = "mean"  # how attributes become one row
    hidden: int = Field(512, ge=1)  # width of the two hidden layers of each head
    width: int = Field(256, ge=1)  # d of the shared space
    normalise: Literal["before", "after"] = "before"  # a hidden layer's layer norm: before or after the GELU
    dropout: float = Field(0.1, ge=0, lt=1)  # after each hidden layer
    # Share of products of which one modality is hidden in an epoch, so that a missing one is no surprise.
    modality_dropout: float = Field(0.1, ge=0, lt=1)
    temperature: float = Field(0.07, gt=0)  # τ, or where learning it starts
    learn_temperature: bool = True  # train log(1/τ)
    balance: float = Field(0.5, ge=0, le=1)  # λ of Eq. 7.9, the weight of product→category
    # Products of one category in a batch: negatives of each other, as published, or masked out of both sums.
    duplicates: Literal["negatives", "masked"] = "masked"
    # Share of a score that is the frozen text encoder's cosine of category and title, so that categories that
    # training never saw keep what the encoder knew of them. Models without titles have none.
    zero_shot: float = Field(0.0, ge=0, lt=1)
    tree_distance: float = Field(0.0, ge=0)  # strength of the tree-aware loss
    epochs: int = Field(30, ge=1)
    batch_size: int = Field(128, ge=2)  # pairs
    learning_rate: float = Field(1e-3, gt=0)  # of AdamW
    weight_decay: float = Field(1e-3, ge=0)
    patience: int | None = Field(10, ge=1)  # stop after so many epochs without a better validation measure
    seed: int = Field(0, ge=0)  # of weights, order and draws

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.modalities or self.modalities != tuple(m for m in MODALITIES if m in self.modalities):
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
        """Return the options of section 7.4.2: τ = 1, λ = 0.5, 30 epochs, batches of 8 (most general) or 128.

        What the chapter leaves out is ours: widths, rate and decay (those of the authors' other code), dropout 0.
        """
        return cls(
            modalities=modalities,
            setting=setting,
            dropout=0.0,
            modality_dropout=0.0,
            patience=None,
            temperature=1.0,
            learn_temperature=False,
            duplicates="negatives",
            batch_size=8 if setting == "most-general" else 128,
        )
