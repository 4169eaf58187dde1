"""Caption tower without word order: the mean of a caption's word embeddings, and a head.

It is a control. Whatever it scores, it scores without knowing who does what to whom, and a change of the
order of words changes nothing it gives, to the last bit: words are added in the order of their ids, all of
them count (no caption is cut, or other words would fall off the end of a shuffled one), and in evaluation a
caption's dense layers are computed by themselves, for the last bits of a matrix product depend on how many
rows it has.

Source: the bag-of-words control is ours; Yuksekgonul et al., When and Why Vision-Language Models Behave like
Bags-of-Words, ICLR 2023, for the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from diptych.core.errors import UsageError
from diptych.data.vocabulary import PADDING, Vocabulary
from diptych.encoders.caption_inputs import TokenInputs, start_from_vectors
from diptych.encoders.heads import make_head
from diptych.encoders.tower import ProjectionConfig, Tower


class BagTowerConfig(BaseModel):
    """What a bag-of-words tower is made of.

    Attributes:
        kind: ``bag``.
        word_width: length of a word embedding; the shared space's width when not given.
        word_vectors, word_vector_scale: as for a GRU tower.
        head: ``none`` takes the mean as it is, ``linear`` and ``mlp`` put a head on it.
        hidden: width of the MLP head's hidden layer.
        bias: whether the head's layers have one.
        batch_norm: normalise the head's output over the batch, before unit length.
        dropout: of the mean, in training.
        min_count: words seen less often in the vocabulary's captions are unknown.
        vocabulary_splits: the splits whose captions the vocabulary is built from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["bag"] = "bag"
    word_width: int | None = Field(None, ge=1)
    word_vectors: str | None = None
    word_vector_scale: Literal["matched", "given"] = "matched"
    head: Literal["none", "linear", "mlp"] = "none"
    hidden: int = Field(1024, ge=1)
    bias: bool = True
    batch_norm: bool = False
    dropout: float = Field(0.0, ge=0, lt=1)
    min_count: int = Field(4, ge=1)
    vocabulary_splits: tuple[str, ...] = ("train",)

    @model_validator(mode="after")
    def _needs_head(self) -> BagTowerConfig:
        if self.batch_norm and self.head == "none":
            raise ValueError("batch_norm is of a head, and head is 'none'")
        return self


class BagTower(Tower):
    """Token ids to unit rows, the same for the same words in any order."""

    def __init__(
        self,
        config: BagTowerConfig,
        width: int,
        vocabulary: Vocabulary,
        load_weights: bool = True,
        *,
        projection: ProjectionConfig | None = None,
        absolute: bool = False,
    ) -> None:
        super().__init__(width, projection, absolute)
        self.config = config
        self.vocabulary = vocabulary
        words = config.word_width or self.base
        if config.head == "none" and words != self.base:
            raise UsageError(
                f"word_width {words} differs from the shared width {self.base} and there is no head",
                "set model.text.head = 'linear', or leave word_width out",
            )
        self.embed = nn.Embedding(len(vocabulary), words)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        if config.word_vectors is not None and load_weights:
            start_from_vectors(
                self.embed, vocabulary, Path(config.word_vectors), config.word_vector_scale == "given"
            )
        self.dropout = nn.Dropout(config.dropout)
        self.head: nn.Module = nn.Identity()
        if config.head != "none":
            hidden = config.hidden if config.head == "mlp" else None
            self.head = make_head(words, self.base, hidden, 0.0, config.bias, config.batch_norm)

    def inputs(self, texts: Sequence[str]) -> TokenInputs:
        """``texts`` as token ids, start and end included, ready to be batched; none is cut."""
        return TokenInputs(*self.vocabulary.encode_all(texts), self.vocabulary)

    def describe(self) -> dict[str, Any]:
        return {"limit": None, "words": len(self.vocabulary), "cut": "none", "order": "ignored"}

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, t) token ids and (n,) lengths ≥ 1 → (n, width) unit rows."""
        means = self._means(tokens, lengths.to(tokens.device))
        if self.training:
            return self.finish(self.head(self.dropout(means)))
        # Each mean a tensor of its own: where it lies in memory can change a product's last bits, too.
        return torch.cat([self.finish(self.head(mean[None].clone())) for mean in means])

    def _means(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, t) token ids → (n, word_width), added one after another in the order of ids."""
        ordered = tokens.sort(dim=1).values
        starts = lengths.cumsum(0) - lengths
        bags: Tensor = nn.functional.embedding_bag(
            ordered[ordered != PADDING], self.embed.weight, starts, mode="mean"
        )
        return bags
