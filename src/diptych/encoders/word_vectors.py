"""Word embeddings that start from vectors somebody else learned, read from an .npz file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from diptych.core.errors import MismatchError
from diptych.data.vocabulary import Vocabulary
from diptych.data.word_vectors import read_word_vectors


def start_from_vectors(embed: nn.Embedding, vocabulary: Vocabulary, path: Path, as_given: bool) -> None:
    """Words that the file knows get its vector, narrower ones in the first places of a row.

    Args:
        embed: (words, width) of freshly drawn embeddings.
        path: an .npz with ``words`` (n,) and ``vectors`` (n, at most width).
        as_given: take the vectors as they are and draw everything else from N(0, 1), as Bleeker et
            al. 2022 do; otherwise the file as a whole is scaled to the spread of ``embed``.
    """
    known, vectors = read_word_vectors(path, "model.text.word_vectors in the recipe")
    width = embed.embedding_dim
    if vectors.shape[1] > width:
        raise MismatchError(
            f"word vectors of shape {vectors.shape} do not fit word_width {width}",
            f"set model.text.word_width to at least {vectors.shape[-1]}",
        )
    spread = 1.0 if as_given else float(embed.weight.detach().std()) / max(float(vectors.std()), 1e-12)
    with torch.no_grad():
        if as_given:
            nn.init.normal_(embed.weight)
        for number, word in enumerate(vocabulary.entries):
            if word in known:
                embed.weight[number, : vectors.shape[1]] = torch.from_numpy(vectors[known[word]] * spread)
