"""Input target decoding: a caption's row has to give back the caption's tokens.

A GRU that starts from the caption's row z reads the tokens and predicts, after each, the one that
follows (Eq. 4)::

    L_rec = −Σ_{t=2}^{n} log p(x_t | x_1, …, x_{t−1}, z)

x_1 is the start token, which is given; the end token is predicted; padding counts nowhere. The loss
of a batch is this sum per caption, averaged over captions. That alignment is the published one and
no token is predicted by a state that has read it.

The published soft-max is not over the vocabulary but over the time axis: every logit competes with
the same word's logits at the other steps of its caption, steps of padding included (where the state
is zero and the logits are the output layer's bias). What it gives is no probability of a word, and
depends on the longest caption of the batch. ``compat="time-axis"`` reproduces it; the published
bound η = 6 refers to that quantity.

Source: Bleeker, Yates, de Rijke, Keep the Caption Information, 2022.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from diptych.core.errors import UsageError

TokenCompat = Literal["none", "time-axis"]
TokenReduction = Literal["mean", "token-mean", "none"]


def token_reconstruction_loss(
    logits: Tensor,
    tokens: Tensor,
    lengths: Tensor,
    compat: TokenCompat = "none",
    reduction: TokenReduction = "mean",
) -> Tensor:
    """−log p of each caption's second to last token under the logits one step before (Eq. 4)."""
    if logits.dim() != 3 or logits.shape[:2] != tokens.shape:
        raise UsageError(
            f"logits have shape {tuple(logits.shape)}, tokens {tuple(tokens.shape)}",
            "logits are (n, t, vocabulary), tokens (n, t)",
        )
    predicted = _predicted(tokens, lengths, compat, reduction)
    following = tokens[:, 1:]
    if compat == "time-axis":
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=1)
        losses = -scores[:, :-1].gather(2, following[:, :, None])[:, :, 0][predicted]
    else:
        losses = _cross_entropy(logits[:, :-1][predicted], following[predicted])
    return _reduced(losses, predicted, reduction)


def _predicted(tokens: Tensor, lengths: Tensor, compat: str, reduction: str) -> Tensor:
    """(n, t − 1) boolean: the steps that predict a token which is there."""
    if compat not in ("none", "time-axis"):
        raise UsageError(f"compat {compat!r}", "'none', or 'time-axis' as published")
    if reduction not in ("mean", "token-mean", "none"):
        raise UsageError(f"reduction {reduction!r}", "one of 'mean', 'token-mean', 'none'")
    if tokens.dim() != 2 or lengths.shape != tokens.shape[:1] or len(tokens) == 0:
        raise UsageError(
            f"tokens have shape {tuple(tokens.shape)}, lengths {tuple(lengths.shape)}",
            "tokens are (n, t), lengths (n,), n at least 1",
        )
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < 1 or longest > tokens.shape[1]:
        raise UsageError(
            f"lengths from {shortest} to {longest} for {tokens.shape[1]} tokens per row",
            "a length counts a caption's tokens, start and end included",
        )
    if longest < 2:
        raise UsageError(f"captions of length {longest}", "a caption has a start and an end token at least")
    steps = torch.arange(1, tokens.shape[1], device=tokens.device)
    return steps < lengths.to(tokens.device)[:, None]


def _cross_entropy(logits: Tensor, tokens: Tensor) -> Tensor:
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return nn.functional.cross_entropy(logits, tokens, reduction="none")


def _reduced(losses: Tensor, predicted: Tensor, reduction: TokenReduction) -> Tensor:
    if reduction == "token-mean":
        return losses.mean()
    if reduction == "mean":
        return losses.sum() / len(predicted)
    captions = predicted.nonzero(as_tuple=True)[0]
    return losses.new_zeros(len(predicted)).index_add(0, captions, losses)


class InputTargetDecoder(nn.Module):
    """Word embeddings from scratch, a GRU that starts from the caption's row, a layer to the vocabulary.

    Teacher forcing: it reads the caption's own tokens, not its predictions.

    Args:
        vocabulary_size: words, the special ones included.
        width: of the caption rows, and of the GRU's state.
        word_width: of its word embeddings.
    """

    def __init__(self, vocabulary_size: int, width: int, word_width: int = 300) -> None:
        super().__init__()
        if min(vocabulary_size, width, word_width) < 1:
            raise UsageError(
                f"an input decoder of {vocabulary_size} words, width {width}, word width {word_width}",
                "all are at least 1",
            )
        self.embed: nn.Embedding = nn.Embedding(vocabulary_size, word_width)
        self.gru: nn.GRU = nn.GRU(word_width, width, batch_first=True)
        self.token_prediction_layer: nn.Linear = nn.Linear(width, vocabulary_size)

    def forward(self, captions: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, width) rows, (n, t) ids and (n,) lengths → (n, t, vocabulary) logits of all steps.

        States after a caption's end are zero, so that the logits there are the layer's bias. For a
        loss, :meth:`loss` makes far fewer logits.
        """
        logits: Tensor = self.token_prediction_layer(self._states(captions, tokens, lengths))
        return logits

    def loss(
        self,
        captions: Tensor,
        tokens: Tensor,
        lengths: Tensor,
        compat: TokenCompat = "none",
        reduction: TokenReduction = "mean",
    ) -> Tensor:
        """:func:`token_reconstruction_loss` of this decoder's logits.

        Only the steps that predict a token get logits: with captions of 12 tokens padded to 25 that
        is less than half the memory of all steps. ``time-axis`` needs them all.
        """
        predicted = _predicted(tokens, lengths, compat, reduction)
        if compat == "time-axis":
            logits = self(captions, tokens, lengths)
            return token_reconstruction_loss(logits, tokens, lengths, compat, reduction)
        states = self._states(captions, tokens, lengths)[:, :-1][predicted]
        losses = _cross_entropy(self.token_prediction_layer(states), tokens[:, 1:][predicted])
        return _reduced(losses, predicted, reduction)

    def _states(self, captions: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
        if captions.dim() != 2 or captions.shape != (len(tokens), self.gru.hidden_size):
            raise UsageError(
                f"caption rows have shape {tuple(captions.shape)}, tokens {tuple(tokens.shape)}",
                f"rows are (n, {self.gru.hidden_size}), one per row of tokens",
            )
        words = self.embed(tokens)
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, _ = self.gru(packed, captions[None].to(words.dtype))
        states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=tokens.shape[1])
        return states
