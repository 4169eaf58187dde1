"""A small collection of dense rows and captions in which captions say what their pictures hold."""

from __future__ import annotations

import numpy as np

from diptych.encoders.embeddings import Embeddings
from diptych.sparse.head import fresh_heads
from diptych.sparse.options import SparsifyOptions
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.task import PairedRows
from diptych.sparse.vocabulary import TermVocabulary

WORDS = ("dog", "cat", "man", "snow", "beach", "red", "bike", "runs", "jumps", "ball", "tree", "girl")
WIDTH = 8


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def small_pairs(count=24, captions=2, seed=0, encoder="e0"):
    """``count`` pictures of four words each; a caption says three of them; rows are noisy sums of words."""
    random = np.random.default_rng(seed)
    vectors = np.random.default_rng(7).normal(size=(len(WORDS), WIDTH))
    shown = np.array([random.permutation(len(WORDS))[:4] for _ in range(count)])
    said = np.array([random.permutation(row)[:3] for row in np.repeat(shown, captions, axis=0)])
    images = unit(vectors[shown].sum(axis=1) + random.normal(0, 0.1, (count, WIDTH)))
    texts = unit(vectors[said].sum(axis=1) + random.normal(0, 0.1, (len(said), WIDTH)))

    def embeddings(rows, kind):
        ids = [f"{kind}{row}" for row in range(len(rows))]
        return Embeddings(ids, rows, encoder, f"data{seed}", kind, {"split": "train"})

    return PairedRows(
        embeddings(images, "image"),
        embeddings(texts, "text"),
        [" ".join(WORDS[word] for word in row) for row in said],
        np.repeat(np.arange(count), captions),
    )


def options(**sections):
    """Quick ones; ``training={"epochs": 3}`` changes a section's values."""
    chosen: dict[str, dict[str, object]] = {
        "vocabulary": {"size": 60, "terms": "pieces"},
        "head": {"width": 6},
        "loss": {"temperature": 0.1, "words": 0.0},
        "training": {"epochs": 4, "batch_size": 16, "learning_rate": 1e-2, "projection_learning_rate": 1e-2}
        | {"precision": "float32", "checkpoint_minutes": 60},
        "expansion": {},
    }
    whole: dict[str, object] = {}
    for name, values in sections.items():
        if isinstance(values, dict):
            chosen[name] = chosen[name] | values
        else:
            whole[name] = values
    return SparsifyOptions.model_validate(whole | chosen)


DATA = small_pairs()
VOCABULARY = TermVocabulary.learned(DATA.captions, 60)


def made(mode="c", *, seed=0, shared=True, bias=True, encoder="e0", width=WIDTH):
    """An untrained head over the words of ``DATA``."""
    heads = fresh_heads(width, 6, len(VOCABULARY.terms), shared=shared, bias=bias, eps=1e-5, seed=seed)
    chosen = options(expansion={"mode": mode}, head={"shared": shared, "bias": bias, "eps": 1e-5})
    return Sparsifier(heads, VOCABULARY, chosen, encoder, device="cpu")
