"""Starting weights of a head's layer norm and second map: vectors of terms that already mean something."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.hub import load_transformers
from diptych.sparse.options import HeadOptions
from diptych.sparse.vocabulary import TermVocabulary

logger: logging.Logger = logging.getLogger(__name__)

# Of the entries of ``cooccurrence`` and ``random``, as BERT's are drawn. Behind a layer norm of ones and zeros a row of
# length r = 0.02 · √ω (0.3 for ω = 256) gives outputs of spread r, half of them above 0: with r = 1 and more, a head
# has much to unlearn first and ends with more non-zeros and a lower recall.
_SPREAD = 0.02
_OVERSAMPLING = 16
_POWER_STEPS = 4
_NOTHING = 1e-10
_NORM = {"bert": "cls.predictions.transform.LayerNorm", "distilbert": "vocab_layer_norm"}


@dataclass(frozen=True, eq=False)
class StartingWeights:
    """The start of a head's layer norm and second map; its first map begins at random."""

    projector: np.ndarray  # (|V|, ω) float32
    bias: np.ndarray | None  # (|V|,) float32; None: zeros, or a head without
    norm_weight: np.ndarray | None = None  # (ω,) float32 of the layer norm; None: ones
    norm_bias: np.ndarray | None = None  # (ω,); None: zeros


def starting_weights(
    vocabulary: TermVocabulary,
    head: HeadOptions,
    captions: Sequence[str],
    seed: int,
    source: str | Path | None = None,
) -> StartingWeights:
    """Return the starting weights that ``head.start`` names."""
    bias = np.zeros(len(vocabulary), dtype=np.float32) if head.bias else None
    if head.start == "cooccurrence" or (head.start == "auto" and source is None):
        vectors = term_vectors(vocabulary.caption_terms(captions), head.width, seed)
        return StartingWeights(vectors, bias)
    if head.start == "random":
        drawn = np.random.default_rng(seed).normal(0.0, _SPREAD, (len(vocabulary), head.width))
        return StartingWeights(drawn.astype(np.float32), bias)
    if source is None:
        raise UsageError("head.start = mlm needs a masked language model", "name it in vocabulary.source")
    model, rows = read_head(source), vocabulary.source_rows
    if rows.max(initial=-1) >= len(model.projector):
        raise MismatchError(
            f"the vocabulary has a term at row {rows.max()} of {source}, which has {len(model.projector)} rows",
            "take the vocabulary and the starting weights from the same model",
        )
    if model.norm_weight is None:
        logger.warning("%s was saved without its head: only its embeddings are taken", source)
    if head.bias and model.bias is not None:
        bias = model.bias[rows]
    return replace(model, projector=model.projector[rows], bias=bias)


def positive_pmi(terms: csr_array) -> csr_array:
    """Return (|V|, |V|) float64: max(0, ln(n · n_ij / (n_i · n_j))) of the (n, |V|) captions that contain both terms.

    The diagonal is ln(n / n_i): the rarer, the more it says. Church and Hanks 1990; Levy and Goldberg 2014.
    """
    contains = csr_array(terms, copy=True).astype(np.float64)
    contains.data[:] = 1.0
    counts = np.asarray(contains.sum(axis=0)).ravel()
    inverse = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
    ratio = csr_array(diags_array(inverse) @ csr_array(contains.T @ contains) @ diags_array(inverse))
    ratio.data = np.maximum(0.0, np.log(ratio.data * contains.shape[0]))
    ratio.eliminate_zeros()
    ratio.sort_indices()
    return ratio


def largest_components(matrix: csr_array, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (r,) of largest size and eigenvectors (n, r) of a symmetric matrix; r ≤ ``count``, n.

    By subspace iteration from a random start (Halko et al. 2011, algorithm 4.4); the largest entry of each is positive.
    """
    size = matrix.shape[0]
    basis = np.random.default_rng(seed).standard_normal((size, min(size, count + _OVERSAMPLING)))
    for _ in range(_POWER_STEPS + 1):
        basis, _ = np.linalg.qr(matrix @ basis)
    values, inner = np.linalg.eigh(basis.T @ (matrix @ basis))
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    vectors = basis @ inner[:, order]
    if vectors.size:
        peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
        vectors = vectors * np.where(peaks < 0, -1.0, 1.0)
    return values[order], vectors


def term_vectors(terms: csr_array, width: int, seed: int) -> np.ndarray:
    """Return (|V|, width) float32 rows of one length: eigenvectors of the captions' positive PMI times √|eigenvalue|.

    A term that stands in no caption, or in all, gets a random direction; of fewer components the last columns are 0.
    """
    vectors = np.zeros((terms.shape[1], width))
    values, components = largest_components(positive_pmi(terms), width, seed)
    sizes = np.abs(values)
    sizes[sizes <= _NOTHING * sizes.max(initial=0.0)] = 0.0  # noise, which the square root would raise
    vectors[:, : len(values)] = components * np.sqrt(sizes)
    lengths = np.linalg.norm(vectors, axis=1)
    lost = lengths <= _NOTHING * lengths.max(initial=0.0)
    vectors[lost] = np.random.default_rng([seed, 1]).standard_normal((int(lost.sum()), width))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / lengths * (_SPREAD * np.sqrt(width)), dtype=np.float32)


def read_head(source: str | Path) -> StartingWeights:
    """Read what a masked language model multiplies its last hidden states with, from a folder or by its hub name.

    A sentence encoder is a BERT without such a head: it has embeddings only.
    """

    def check(config: Any) -> None:
        if config.model_type not in _NORM:
            raise UsageError(
                f"{source} is a {config.model_type!r} model, whose vocabulary a head cannot start from",
                "give a BERT or DistilBERT, or set head.start to cooccurrence",
            )

    model, report = load_transformers(source, "AutoModelForMaskedLM", check)
    missing, norm_name = report["missing_keys"], _NORM[model.config.model_type]
    if any(name.endswith("embeddings.word_embeddings.weight") for name in missing):
        raise StorageError(f"{source} lacks the embeddings of its terms", "download the model again")
    output, norm = model.get_output_embeddings(), model.get_submodule(norm_name)
    tensors = [output.weight, output.bias, norm.weight, norm.bias]
    projector, *others = (tensor.detach().float().numpy().copy() for tensor in tensors)
    made_up = any(name.startswith(norm_name) for name in missing)
    return StartingWeights(projector, None) if made_up else StartingWeights(projector, *others)
