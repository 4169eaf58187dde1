"""Caption tower: word embeddings and a GRU, one- or two-directional.

``pool="last"`` takes each direction where it has read the whole caption, the forward half at the last token and the
backward half at the first. The published code took both at the last token, where the backward half has seen one
word (``compat="last-token"``). ``mean`` and ``max`` pool over all tokens instead.

Sources: Faghri et al., VSE++, BMVC 2018; Bleeker, Yates, de Rijke, 2022, for the bidirectional tower.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from diptych.core.errors import UsageError
from diptych.core.options import Options
from diptych.data.vocabulary import PADDING, UNKNOWN, Vocabulary, first_words
from diptych.encoders.tower import TokenInputs, Tower, needs_head, text_head, word_embedding

logger = logging.getLogger(__name__)


class WordTowerConfig(Options):
    """What towers of words have in common.

    Attributes:
        word_vector_scale: ``matched`` scales the file as a whole to the spread of fresh embeddings;
            ``given`` takes it as it is and draws all other words from N(0, 1), as published.
        word_vector_lookup: ``published`` looks for a word that is not in the file without hyphens, dots and
            apostrophes, and before a slash.
        head: ``none`` takes the state as it is (VSE++), ``linear`` and ``mlp`` put a head on it.
    """

    word_vectors: str | None = None  # an .npz file with words and vectors that word embeddings start from
    word_vector_scale: Literal["matched", "given"] = "matched"
    word_vector_lookup: Literal["exact", "published"] = "exact"
    head: Literal["none", "linear", "mlp"] = "none"
    hidden: int = Field(1024, ge=1)  # width of the MLP head's hidden layer
    bias: bool = True  # whether the head's layers have one
    batch_norm: bool = False  # normalise the head's output over the batch, before unit length
    dropout: float = Field(0.0, ge=0, lt=1)  # of word embeddings (gru) and of the pooled state, in training
    min_count: int = Field(4, ge=1)  # words seen less often in the vocabulary's captions are unknown
    vocabulary_splits: tuple[str, ...] = ("train",)  # the splits whose captions the vocabulary is built from

    _head = model_validator(mode="after")(needs_head)


class CaptionTowerConfig(WordTowerConfig):
    """What a caption tower is made of.

    Attributes:
        hidden_state: length of the GRU's state (both directions together); the shared space's width when
            not given.
        compat: ``last-token`` gathers both directions at the last token, as published.
    """

    kind: Literal["gru"] = "gru"
    word_width: int = Field(300, ge=1)
    bidirectional: bool = False  # read captions in both directions, half the state each
    layers: int = Field(1, ge=1)  # GRU layers
    hidden_state: int | None = Field(None, ge=2)
    pool: Literal["last", "mean", "max"] = "last"  # last, mean or max over tokens
    word_dropout: float = Field(0.0, ge=0, lt=1)  # probability that a word becomes <unk>, in training
    max_tokens: int = Field(100, ge=3)  # longer captions are cut, start and end included
    compat: Literal["none", "last-token"] = "none"


_PUBLISHED = {"fc.projector.0.": "head.1.", "fc.projector.2.": "head.4.", "bn.": "head.5."}


def _renamed(name: str) -> str:
    return next((new + name[len(old) :] for old, new in _PUBLISHED.items() if name.startswith(old)), name)


class CaptionTower(Tower):
    """Token ids to unit rows."""

    def __init__(
        self,
        config: CaptionTowerConfig,
        width: int,
        vocabulary: Vocabulary,
        load_weights: bool = True,
        **ends: Any,
    ) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.vocabulary = vocabulary
        state = config.hidden_state or self.base
        if config.head == "none" and state != self.base:
            raise UsageError(
                f"hidden_state {state} differs from the shared width {self.base} and there is no head",
                "set model.text.head = 'linear', or leave hidden_state out",
            )
        if config.bidirectional and state % 2:
            raise UsageError(f"hidden_state {state} is odd", "two directions share it evenly")
        self.embed = word_embedding(vocabulary, config.word_width, config, load_weights)
        self.rnn = nn.GRU(
            config.word_width,
            state // (2 if config.bidirectional else 1),
            num_layers=config.layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout if config.layers > 1 else 0.0,
            batch_first=True,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.head = text_head(config, state, self.base, config.hidden)

    def inputs(self, texts: Sequence[str]) -> TokenInputs:
        """Return ``texts`` as token ids, ready to be batched; those that reach the limit are counted and logged."""
        flat, starts = self.vocabulary.encode_all(texts, self.config.max_tokens)
        inputs = TokenInputs(flat, starts, self.vocabulary, self.config.max_tokens)
        cut = int(np.count_nonzero(inputs.lengths == self.config.max_tokens))
        if cut:
            logger.info("%d of %d texts reach or exceed %d tokens", cut, len(texts), self.config.max_tokens)
        return inputs

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        """Return texts with their endings: :meth:`inputs` makes the tokens of them that ``batch`` makes of both."""
        cut = 0
        ended = list(texts)
        for place, (text, ending) in enumerate(zip(texts, endings, strict=True)):
            if not ending:
                continue
            room = self.config.max_tokens - len(self.vocabulary.encode(ending))
            if room < 0:
                raise UsageError(
                    f"captions of {self.config.max_tokens} tokens have no room for the ending {ending!r}",
                    f"set model.text.max_tokens to at least {self.config.max_tokens - room}",
                )
            head = first_words(text, room)
            cut += head is not text
            ended[place] = f"{head} {ending}"
        if cut:
            logger.info("%d of %d texts lost words to make room for their endings", cut, len(texts))
        return ended

    def describe(self) -> dict[str, Any]:
        return {"limit": self.config.max_tokens, "words": len(self.vocabulary), "cut": "end"}

    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Load a published caption encoder's weights under its names, VSE++'s, or LTD's with a head ``fc.projector``.

        A vocabulary of the same words in the same order is up to the caller.
        """
        self.load_state_dict({_renamed(name): value for name, value in weights.items()})

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, t) token ids and (n,) lengths ≥ 1 → (n, width) unit rows."""
        if self.training and self.config.word_dropout:
            dropped = torch.rand(tokens.shape, device=tokens.device) < self.config.word_dropout
            tokens = tokens.masked_fill(dropped & (tokens > UNKNOWN), UNKNOWN)
        words = self.dropout(self.embed(tokens))
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        with torch.autocast("cpu", enabled=False):  # casting the state at every word costs more than it gains
            outputs, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.finish(self.head(self.dropout(self._pool(outputs, lengths.to(outputs.device)))))

    def _pool(self, outputs: Tensor, lengths: Tensor) -> Tensor:
        """(n, t, state) → (n, state)."""
        if self.config.pool == "last":
            last = outputs[torch.arange(len(outputs), device=outputs.device), lengths - 1]
            if self.config.bidirectional and self.config.compat == "none":
                half = outputs.shape[2] // 2
                return torch.cat([last[:, :half], outputs[:, 0, half:]], dim=1)
            return last
        inside = torch.arange(outputs.shape[1], device=outputs.device) < lengths[:, None]
        if self.config.pool == "mean":
            return (outputs * inside[:, :, None]).sum(dim=1) / lengths[:, None]
        return outputs.masked_fill(~inside[:, :, None], -math.inf).amax(dim=1)


class BagTowerConfig(WordTowerConfig):
    """What a bag-of-words tower is made of; ``word_width`` is the shared space's when not given."""

    kind: Literal["bag"] = "bag"
    word_width: int | None = Field(None, ge=1)


class BagTower(Tower):
    """Token ids to unit rows, the same for the same words in any order, to the last bit.

    Words are added in the order of their ids, all of them count (no caption is cut, or other words would fall off the
    end of a shuffled one), and in evaluation a caption's dense layers are computed by themselves, for the last bits
    of a matrix product depend on how many rows it has.

    Source: the control is ours; Yuksekgonul et al., When and Why Vision-Language Models Behave like Bags-of-Words,
    ICLR 2023, for the question.
    """

    def __init__(
        self,
        config: BagTowerConfig,
        width: int,
        vocabulary: Vocabulary,
        load_weights: bool = True,
        **ends: Any,
    ) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.vocabulary = vocabulary
        words = config.word_width or self.base
        if config.head == "none" and words != self.base:
            raise UsageError(
                f"word_width {words} differs from the shared width {self.base} and there is no head",
                "set model.text.head = 'linear', or leave word_width out",
            )
        self.embed = word_embedding(vocabulary, words, config, load_weights)
        self.dropout = nn.Dropout(config.dropout)
        self.head = text_head(config, words, self.base, config.hidden)

    def inputs(self, texts: Sequence[str]) -> TokenInputs:
        """Return ``texts`` as token ids, start and end included, ready to be batched; none is cut."""
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
