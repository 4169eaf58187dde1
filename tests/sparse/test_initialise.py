from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.sparse.initialise import (
    largest_components,
    positive_pmi,
    read_head,
    starting_weights,
    term_vectors,
)
from diptych.sparse.options import HeadOptions
from diptych.sparse.vocabulary import TermVocabulary, bert_tokenizer

from .tiny_masked import PIECES, WIDTH, masked_folder, masked_model

CAPTIONS = ["a dog runs.", "dogs on snow", "a red dog", "a dog on red snow"]


VOCABULARY = TermVocabulary(bert_tokenizer(PIECES))


def parts(kind):
    """The head's weights as the layouts name them."""
    state = {name: weight.numpy() for name, weight in masked_model(kind).state_dict().items()}
    norm, output = "vocab_layer_norm", "vocab_projector"
    if kind == "bert":
        norm, output = "cls.predictions.transform.LayerNorm", "cls.predictions"
    embeddings = state[f"{kind}.embeddings.word_embeddings.weight"]
    found = {"embeddings": embeddings, "bias": state[f"{output}.bias"]}
    return found | {"weight": state[f"{norm}.weight"], "shift": state[f"{norm}.bias"]}


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_a_masked_language_models_own_head(kind, tmp_path):
    folder = masked_folder(kind, tmp_path)
    vocabulary = TermVocabulary.pretrained(folder)
    start = starting_weights(vocabulary, HeadOptions(width=99), [], 0, folder)
    expected = parts(kind)
    assert start.projector.shape[1] == WIDTH
    np.testing.assert_array_equal(start.projector, expected["embeddings"])
    np.testing.assert_array_equal(start.bias, expected["bias"])
    np.testing.assert_array_equal(
        [start.norm_weight, start.norm_bias], [expected["weight"], expected["shift"]]
    )


def test_a_restricted_vocabulary_takes_its_rows(tmp_path):
    folder = masked_folder("distilbert", tmp_path)
    vocabulary = TermVocabulary.pretrained(folder).restricted(CAPTIONS)
    start = starting_weights(vocabulary, HeadOptions(), CAPTIONS, 0, str(folder))
    expected = parts("distilbert")
    rows = [PIECES.index(term) for term in vocabulary.terms]
    assert len(rows) < len(PIECES)
    np.testing.assert_array_equal(start.projector, expected["embeddings"][rows])
    np.testing.assert_array_equal(start.bias, expected["bias"][rows])
    plain = starting_weights(vocabulary, HeadOptions(bias=False), CAPTIONS, 0, folder)
    assert plain.bias is None
    assert plain.norm_bias is not None


def test_a_model_without_its_head_gives_its_embeddings(tmp_path, caplog):
    model = masked_model("bert")
    masked_folder("bert", tmp_path)
    model.bert.save_pretrained(tmp_path)
    vocabulary = TermVocabulary.pretrained(tmp_path)
    start = starting_weights(vocabulary, HeadOptions(), [], 0, tmp_path)
    np.testing.assert_array_equal(start.projector, parts("bert")["embeddings"])
    assert start.norm_weight is start.norm_bias is None
    assert not start.bias.any()
    assert "saved without its head" in caplog.text


def test_a_vocabulary_of_another_model(tmp_path):
    masked_model("bert", terms=9).save_pretrained(tmp_path)
    said = "a term at row 14 of .* which has 9 rows"
    refused(MismatchError, said, starting_weights, VOCABULARY, HeadOptions(), [], 0, tmp_path)


def test_a_model_is_of_another_kind_or_its_weights_are_missing_or_damaged(tmp_path):
    masked_folder("bert", tmp_path)
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(json.dumps(json.loads(config) | {"model_type": "gpt2"}))
    refused(UsageError, "is a 'gpt2' model", read_head, tmp_path)
    (tmp_path / "config.json").write_text(config)
    state = load_file(tmp_path / "model.safetensors")
    kept = {name: weight for name, weight in state.items() if weight.shape != (len(PIECES), WIDTH)}
    assert len(kept) < len(state)
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    refused(StorageError, "lacks the embeddings", read_head, tmp_path)  # which are not made up
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    refused(StorageError, "cannot be read", read_head, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    refused(StorageError, "holds no weights", read_head, tmp_path)
    refused(UsageError, "somebody/nothing could not be loaded", read_head, "somebody/nothing")


def test_co_occurrence_is_what_starts_without_a_model():
    start = starting_weights(VOCABULARY, HeadOptions(width=6), CAPTIONS, 3)
    assert start.norm_weight is start.norm_bias is None
    assert start.bias.shape == (len(PIECES),)
    np.testing.assert_array_equal(start.projector, term_vectors(VOCABULARY.caption_terms(CAPTIONS), 6, 3))
    assert starting_weights(VOCABULARY, HeadOptions(bias=False), CAPTIONS, 3).bias is None
    with pytest.raises(UsageError, match="needs a masked language model"):
        starting_weights(VOCABULARY, HeadOptions(start="mlm"), CAPTIONS, 0)


def test_a_random_start_is_drawn_as_berts_is():
    options = HeadOptions(width=400, start="random")
    start = starting_weights(VOCABULARY, options, CAPTIONS, 1)
    assert start.projector.shape == (len(PIECES), 400)
    assert start.projector.dtype == np.float32
    assert start.projector.std() == pytest.approx(0.02, rel=0.05)
    assert abs(start.projector.mean()) < 0.002
    np.testing.assert_array_equal(start.projector, starting_weights(VOCABULARY, options, [], 1).projector)
    assert not np.array_equal(start.projector, starting_weights(VOCABULARY, options, [], 2).projector)


def slow_pmi(captions):
    count, size = captions.shape
    table = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            both = sum(bool(row[i] and row[j]) for row in captions)
            if both:
                share = (
                    both / count / (captions[:, i].astype(bool).mean() * captions[:, j].astype(bool).mean())
                )
                table[i, j] = max(0.0, math.log(share))
    return table


@given(st.integers(0, 2**32 - 1))
def test_positive_pmi_agrees_with_counting(seed):
    captions = (np.random.default_rng(seed).random((12, 6)) < 0.4).astype(np.float32)
    rows = csr_array(captions * 3.0)  # how large a weight is does not matter
    np.testing.assert_allclose(positive_pmi(rows).toarray(), slow_pmi(captions), atol=1e-12)
    assert rows.data.size == 0 or set(rows.data) == {3.0}


def symmetric(values, seed):
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((40, 40)))
    return np.asarray((basis[:, : len(values)] * np.array(values)) @ basis[:, : len(values)].T)


def test_the_largest_components_of_a_known_matrix():
    matrix = symmetric([9.0, -7.0, 5.0, 3.0, 0.1], seed=1)
    values, vectors = largest_components(csr_array(matrix), 4, seed=0)
    np.testing.assert_allclose(values, [9.0, -7.0, 5.0, 3.0])
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(4)] > 0).all()
    again = largest_components(csr_array(matrix), 4, seed=5)[1]
    np.testing.assert_allclose(again, vectors, atol=1e-9)


def test_terms_of_the_same_captions_have_vectors_alike():
    # Terms 0 and 1 always stand together, so do 2 and 3; 4 stands with either.
    topics = [[1, 1, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0]]
    vectors = term_vectors(csr_array(np.array(topics * 5, dtype=np.float32)), 4, seed=0)
    likeness = vectors @ vectors.T / (0.02**2 * 4)  # of entries that spread by 0.02
    np.testing.assert_allclose(likeness[[0, 2], [1, 3]], 1.0, atol=1e-6)
    np.testing.assert_allclose(likeness[[0, 1], [2, 3]], 0.0, atol=1e-6)
