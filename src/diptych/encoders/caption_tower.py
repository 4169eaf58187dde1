"""Caption towers: word embeddings and a GRU, one- or two-directional; a bag of words; vectors of sentences.

``pool="last"`` takes the forward half at the last token and the backward half at the first; the published code took
both at the last one, where the backward half has seen one word (``compat="last-token"``).

Sources: Faghri et al., VSE++, BMVC 2018; Bleeker, Yates, de Rijke, 2022, for the bidirectional tower.
"""

import logging
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from diptych.core.errors import MismatchError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.vocabulary import PADDING, SPECIAL, UNKNOWN, Vocabulary, first_words
from diptych.data.word_vectors import read_word_vectors, row_of
from diptych.encoders.official.checkpoint import read_checkpoint
from diptych.encoders.targets.contract import TargetModel, TargetOptions
from diptych.encoders.tower import TargetInputs, TokenInputs, Tower, check_room, needs_head, text_head

logger: logging.Logger = logging.getLogger(__name__)


class WordTowerConfig(Options):
    """Options of both towers of words."""

    word_vectors: str | None = None  # an .npz file with words and vectors that word embeddings start from
    # matched: scaled as a whole to the spread of fresh embeddings; given: as it is, all other words from N(0, 1)
    word_vector_scale: Literal["matched", "given"] = "matched"
    # published: a word that is not there is looked for without hyphens, dots, apostrophes, and before a slash
    word_vector_lookup: Literal["exact", "published"] = "exact"
    head: Literal["none", "linear", "mlp"] = "none"  # none: the state as it is (VSE++)
    hidden: int = Field(1024, ge=1)  # width of the MLP head's hidden layer
    bias: bool = True  # whether the head's layers have one
    batch_norm: bool = False  # normalise the head's output over the batch, before unit length
    dropout: float = Field(0.0, ge=0, lt=1)  # of word embeddings (gru) and of the pooled state, in training
    min_count: int = Field(4, ge=1)  # words seen less often in the vocabulary's captions are unknown
    vocabulary_splits: tuple[str, ...] = ("train",)  # the splits whose captions the vocabulary is built from

    _head = model_validator(mode="after")(needs_head)


class CaptionTowerConfig(WordTowerConfig):
    """Options of a caption tower."""

    kind: Literal["gru"] = "gru"  # a GRU over word embeddings
    word_width: int = Field(300, ge=1)  # length of a word embedding
    bidirectional: bool = False  # read captions in both directions, half the state each
    layers: int = Field(1, ge=1)  # GRU layers
    # of both directions together; None: the shared space's width
    hidden_state: int | None = Field(None, ge=2)
    pool: Literal["last", "mean", "max"] = "last"  # over tokens
    word_dropout: float = Field(0.0, ge=0, lt=1)  # probability that a word becomes <unk>, in training
    max_tokens: int = Field(100, ge=3)  # longer captions are cut, start and end included
    compat: Literal["none", "last-token"] = "none"  # both directions at the last token, as published


class WordTower(Tower):
    """Token ids to unit rows: word embeddings, what subclasses read them with, and a head."""

    def __init__(
        self, config: Any, width: int, vocabulary: Vocabulary, load_weights: bool = True, **ends: Any
    ) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.vocabulary = vocabulary
        self.word_width: int = config.word_width or self.base
        self.embed: nn.Embedding = nn.Embedding(len(vocabulary), self.word_width)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        if config.word_vectors is not None and load_weights:
            self._start_from(Path(config.word_vectors))
        state, key = self._add_layers()
        self.dropout: nn.Dropout = nn.Dropout(config.dropout)
        fix = f"set model.text.head = 'linear', or leave {key} out"
        self.head: nn.Module = text_head(config, state, self.base, config.hidden, key, fix)

    @abstractmethod
    def _add_layers(self) -> tuple[int, str]:
        """Add the layers between words and head; return the width of what they give, and the option that sets it."""

    @torch.no_grad()
    def _start_from(self, file: Path) -> None:
        known, vectors = read_word_vectors(file, "model.text.word_vectors in the recipe")
        if vectors.shape[1] > self.word_width:
            raise MismatchError(
                f"word vectors of shape {vectors.shape} do not fit word_width {self.word_width}",
                f"set model.text.word_width to at least {vectors.shape[-1]}",
            )
        weight = self.embed.weight
        spread = float(weight.std()) / max(float(vectors.std()), 1e-12)
        if self.config.word_vector_scale == "given":
            nn.init.normal_(weight)
            spread = 1.0
        for number, word in enumerate(self.vocabulary.entries):
            row = row_of(word, known, self.config.word_vector_lookup == "published")
            if row is not None:
                weight[number, : vectors.shape[1]] = torch.from_numpy(vectors[row] * spread)


_UNKNOWN_WORD = "word {}"  # what load_published calls the words of a checkpoint without a vocabulary


class CaptionTower(WordTower):
    config: CaptionTowerConfig

    @classmethod
    def load_published(
        cls, path: Path | str | Mapping[str, Any], vocabulary: Vocabulary | None = None, **options: Any
    ) -> Self:
        """Load the caption encoder of a checkpoint of VSE++ or of LTD (Bleeker, Yates, de Rijke, 2022).

        Layout: ``embed.weight`` and a GRU under ``rnn.`` (two directions where it has ``*_reverse``), LTD's with a
        head ``fc.projector.0`` and ``.2`` and, with the triplet loss, ``bn``; in a file of both encoders the second
        of ``model``, read with ``weights_only=True``. ``vocabulary`` has the words in the checkpoint's order; without
        it the tower takes token ids only, and refuses captions. ``options`` are those that no shape determines, such
        as ``max_tokens``.

        Source: github.com/fartashf/vsepp, github.com/MauritsBleeker/reducing-predictive-feature-suppression.
        """
        weights = read_checkpoint(path, 1)
        words, word_width = weights.shape("embed.weight", 2)
        both, head = "rnn.weight_hh_l0_reverse" in weights, "fc.projector.0.weight" in weights
        state = weights.shape("rnn.weight_hh_l0", 2)[1] * (2 if both else 1)
        config = {
            "word_width": word_width,
            "hidden_state": state,
            "bidirectional": both,
            "layers": sum(f"rnn.weight_hh_l{layer}" in weights for layer in range(len(weights.state))),
            "head": "mlp" if head else "none",
            "hidden": weights.shape("fc.projector.0.weight", 2)[0] if head else 1,
            "bias": "fc.projector.0.bias" in weights,
            "batch_norm": "bn.weight" in weights,
            "compat": "last-token",
        }
        width = weights.shape("fc.projector.2.weight", 2)[0] if head else state
        if vocabulary is None:
            unknown = [_UNKNOWN_WORD.format(number) for number in range(len(SPECIAL), words)]
            vocabulary = Vocabulary([*SPECIAL, *unknown])
        names = {"fc.projector.0.": "head.1.", "fc.projector.2.": "head.4.", "bn.": "head.5.", "": ""}
        made = CaptionTowerConfig.read(config | options, "CaptionTower.load_published")
        return cls(made, width, vocabulary).take_published(weights, names)

    def _add_layers(self) -> tuple[int, str]:
        config, state = self.config, self.config.hidden_state or self.base
        if config.bidirectional and state % 2:
            raise UsageError(f"hidden_state {state} is odd", "two directions share it evenly")
        self.rnn: nn.GRU = nn.GRU(
            config.word_width,
            state // (2 if config.bidirectional else 1),
            num_layers=config.layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout if config.layers > 1 else 0.0,
            batch_first=True,
        )
        return state, "hidden_state"

    def inputs(self, texts: Sequence[str]) -> TokenInputs:
        """Return ``texts`` as token ids, ready to be batched; those that reach the limit are counted and logged."""
        if self.vocabulary.entries[-1] == _UNKNOWN_WORD.format(len(self.vocabulary) - 1):
            raise UsageError(
                f"captions cannot be encoded: nothing says which {len(self.vocabulary):,} words the tower knows",
                "load_published(path, vocabulary), with the words in the checkpoint's order",
            )
        flat, starts = self.vocabulary.encode_all(texts, self.config.max_tokens)
        inputs = TokenInputs(flat, starts, self.vocabulary, self.config.max_tokens)
        cut = int(np.count_nonzero(inputs.lengths == self.config.max_tokens))
        if cut:
            logger.info("%d of %d texts reach or exceed %d tokens", cut, len(texts), self.config.max_tokens)
        return inputs

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        """Return texts with their endings, of which :meth:`inputs` makes the tokens that ``batch`` makes of both."""
        cut = 0
        ended = list(texts)
        for place, (text, ending) in enumerate(zip(texts, endings, strict=True)):
            if not ending:
                continue
            room = self.config.max_tokens - len(self.vocabulary.encode(ending))
            check_room(self.config.max_tokens, room, ending)
            head = first_words(text, room)
            cut += head is not text
            ended[place] = f"{head} {ending}"
        if cut:
            logger.info("%d of %d texts lost words to make room for their endings", cut, len(texts))
        return ended

    def describe(self) -> dict[str, Any]:
        return {"limit": self.config.max_tokens, "words": len(self.vocabulary), "cut": "end"}

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Map (n, t) token ids and (n,) lengths ≥ 1 → (n, width) unit rows."""
        if self.training and self.config.word_dropout:
            dropped = torch.rand(tokens.shape, device=tokens.device) < self.config.word_dropout
            tokens = tokens.masked_fill(dropped & (tokens > UNKNOWN), UNKNOWN)
        words = self.dropout(self.embed(tokens))
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        with torch.autocast("cpu", enabled=False):  # casting the state at every word costs more than it gains
            outputs, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.finish(self.head(self.dropout(self._pool(outputs, lengths.to(outputs.device)))))

    def _pool(self, outputs: Tensor, lengths: Tensor) -> Tensor:
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
    """Options of a bag-of-words tower."""

    kind: Literal["bag"] = "bag"  # the mean of word embeddings, whatever their order
    word_width: int | None = Field(None, ge=1)  # length of a word embedding; None: the shared space's width


class BagTower(WordTower):
    """The mean of the words: the same rows for the same words in any order, to the last bit.

    No caption is cut: other words would fall off the end of a shuffled one.

    Source: the control is ours; Yuksekgonul et al., When and Why Vision-Language Models Behave like Bags-of-Words,
    ICLR 2023, for the question.
    """

    def _add_layers(self) -> tuple[int, str]:
        return self.word_width, "word_width"

    def inputs(self, texts: Sequence[str]) -> TokenInputs:
        """Return ``texts`` as token ids, ready to be batched; none is cut."""
        return TokenInputs(*self.vocabulary.encode_all(texts), self.vocabulary)

    def describe(self) -> dict[str, Any]:
        return {"limit": None, "words": len(self.vocabulary), "cut": "none", "order": "ignored"}

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Map (n, t) token ids and (n,) lengths ≥ 1 → (n, width) unit rows."""
        ordered = tokens.sort(dim=1).values  # added in the order of ids
        lengths = lengths.to(tokens.device)
        means: Tensor = nn.functional.embedding_bag(
            ordered[ordered != PADDING], self.embed.weight, lengths.cumsum(0) - lengths, mode="mean"
        )
        if self.training:
            return self.finish(self.head(self.dropout(means)))
        # Caption by caption, each mean a tensor of its own: a product's last bits depend on the number of rows and
        # can depend on where they lie in memory.
        return torch.cat([self.finish(self.head(mean[None].clone())) for mean in means])


class TargetTowerConfig(Options):
    """Options of a target tower."""

    kind: Literal["targets"] = "targets"  # fixed vectors of another text encoder
    targets: TargetOptions = TargetOptions()  # the model that makes the vectors
    head: Literal["none", "linear", "mlp"] = "none"  # none: the vectors as they are
    hidden: int | None = Field(None, ge=1)  # width of the MLP head's hidden layer; None: the targets' own
    bias: bool = False  # whether the head's layers have one
    batch_norm: bool = False  # normalise the head's output over the batch, before unit length

    _head = model_validator(mode="after")(needs_head)


class TargetTower(Tower):
    """A sentence encoder's vectors, as they are or through a head, to unit rows.

    Source: Bleeker, Yates, de Rijke, 2022, 5.5; the published head has two layers without bias.
    """

    def __init__(
        self,
        config: TargetTowerConfig,
        width: int,
        targets: TargetModel,
        load_weights: bool = True,
        **ends: Any,
    ) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.targets = targets
        self._last: tuple[str, TargetInputs] | None = None
        fix = f"set model.width = {targets.width}, or model.text.head = 'mlp'"
        hidden = config.hidden or targets.width
        self.head: nn.Module = text_head(config, targets.width, self.base, hidden, "the targets' width", fix)

    def inputs(self, texts: Sequence[str]) -> TargetInputs:
        key = fingerprint(list(texts))  # the last are kept: validation needs the same after every epoch
        if self._last is None or self._last[0] != key:
            self._last = key, TargetInputs(self.targets.encode(texts))
        return self._last[1]

    def describe(self) -> dict[str, Any]:
        return {"targets": self.targets.describe(), "head": self.config.head}

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Map (n, d) vectors → (n, width) unit rows."""
        return self.finish(self.head(vectors))
