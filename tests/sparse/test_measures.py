from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array
from scipy.stats import kendalltau, pearsonr

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.evaluation import evaluate
from diptych.evaluation.agreement import faithfulness, overlap_at, rank_agreement
from diptych.metrics import GroundTruth, top_k
from diptych.sparse.measures import (
    CaptionWords,
    StaticEmbedding,
    empty_share,
    exact_at,
    flops,
    leading_terms,
    nonzeros,
    semantic_at,
)
from diptych.sparse.vocabulary import SPECIAL_TERMS, TermVocabulary, bert_tokenizer

from .tiny_masked import masked_model

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "d2s_metrics.json").read_text())


def sparse(values):
    return csr_array(np.asarray(values, dtype=np.float32))


TEXTS = sparse([[1, 0, 2, 0], [0, 0, 3, 1]])
IMAGES = sparse([[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0.5, 0]])


def test_coactivation_by_hand():
    # common terms of captions 0 and 1 with pictures 0, 1, 2: 2, 0, 1 and 1, 0, 1
    assert flops(TEXTS, IMAGES) == 5 / 6
    assert nonzeros(TEXTS) == 2
    assert nonzeros(IMAGES) == 4 / 3
    assert empty_share(IMAGES) == 1 / 3
    assert empty_share(TEXTS) == 0
    texts, images = (sparse(GOLDEN[name]) for name in ("sparse_text", "sparse_img"))
    assert flops(texts, images) == pytest.approx(GOLDEN["results"]["flops"], abs=1e-12)


def ones(ids, width):
    dense = np.zeros((len(ids), width))
    for row, columns in enumerate(ids):
        dense[row, columns] = 1
    return sparse(dense)


ROWS = sparse([[0, 3, 1, 0, 3, 2], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]])
SAID = ones([[1, 2], [0], [3]], 6)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 9), positive_only=st.booleans())
def test_leading_terms_as_a_stable_sort(seed, k, positive_only):
    random = np.random.default_rng(seed)
    dense = random.integers(0, 3, (5, 7)) * (random.random((5, 7)) < 0.6)
    out = set(random.choice(7, random.integers(0, 3), replace=False).tolist())
    for row, found in zip(
        dense, leading_terms(sparse(dense), k, left_out=out, positive_only=positive_only), strict=True
    ):
        order = [int(column) for column in np.argsort(-row, kind="stable") if column not in out]
        if positive_only:
            order = [column for column in order if row[column] > 0]
        assert found.tolist() == (order + [-1] * k)[:k]


def test_golden():
    for positive_only in [True, False]:
        for k in [1, 3, 5, 10, 20]:
            rows = sparse(GOLDEN["sparse_text"])
            said = ones(GOLDEN["caption_token_ids"], rows.shape[1])
            vectors = np.array(GOLDEN["static_embeddings"])
            suffix = f"{'_pos' if positive_only else ''}@{k}"
            exact = exact_at(rows, said, k, positive_only=positive_only)
            assert exact == pytest.approx(GOLDEN["results"][f"exact{suffix}"], abs=1e-12)
            semantic = semantic_at(rows, said, vectors, k, positive_only=positive_only)
            assert semantic == pytest.approx(GOLDEN["results"][f"semantic{suffix}"], abs=1e-9)


def test_semantic_by_hand():
    s = np.sqrt(0.5)
    vectors = np.array([[1, 0], [0, 0], [2, 0], [0, 1], [3, 3], [0, -1]], dtype=np.float32)
    # row 0: leading 1, 4, 5; said 1 and 2. 1 is said (1, though it has no vector); 4 is near 2; 5 is at 90°
    assert semantic_at(ROWS, SAID, vectors, 3) == pytest.approx([(1 + s + 0) / 3, 0, 0])
    # row 1: leading 5, said 0; at 90° too. Said 3 instead: opposite
    assert semantic_at(ROWS[[1]], ones([[3]], 6), vectors, 1) == pytest.approx([-1])
    # a caption whose words have no vector, or that says nothing
    assert semantic_at(ROWS[[0]], ones([[1]], 6), vectors, 3) == pytest.approx([1 / 3])
    assert semantic_at(ROWS[[0]], ones([[]], 6), vectors, 3).tolist() == [0]


def test_what_does_not_fit():
    words = CaptionWords(SAID, np.ones((6, 3)), [""] * 6)
    shapes = r"shape \(3, 6\) and caption terms of shape \(2, 6\)"
    another = "with the same static embedding"
    for error, said, call, *values in (
        (UsageError, "k is 0", leading_terms, ROWS, 0),
        (DataError, "a weight is -1", leading_terms, -ROWS[[1]], 2),
        (MismatchError, shapes, exact_at, ROWS, SAID[:2], 3),
        (MismatchError, "5 vectors for 6 terms", semantic_at, ROWS, SAID, np.ones((5, 2)), 3),
        (MismatchError, another, partial(semantic_at, words=words), ROWS, SAID, np.ones((6, 2)), 3),
        (MismatchError, "rows of 4 terms, images of 3", flops, TEXTS, IMAGES[:, :3]),
        (DataError, "0 captions and 3 images", flops, TEXTS[:0], IMAGES),
        (DataError, "a mean over no rows", nonzeros, TEXTS[:0]),
        (DataError, "a mean over no rows", empty_share, TEXTS[:0]),
    ):
        refused(error, said, call, *values)


PIECES = [*SPECIAL_TERMS, "dog", "mo", "##ped", "skate", "##board", "red"]
TABLE = {"dog": [1, 0, 0], "moped": [0, 2, 0], "mo": [0, 0, 3], "red": [1, 1, 0]}


@pytest.fixture
def vocabulary():
    return TermVocabulary(bert_tokenizer(PIECES))


@pytest.fixture
def words(tmp_path):
    np.savez(tmp_path / "glove.npz", words=np.array(list(TABLE)), vectors=np.array(list(TABLE.values())))
    return StaticEmbedding.open(str(tmp_path / "glove.npz"))


def test_captions_say_words_not_pieces(words, vocabulary):
    said = words.of_captions(["A red moped", "a dog dog on a skateboard", ""], vocabulary)
    rows = said.rows.toarray()
    text = [{said.words[column] for column in np.flatnonzero(row)} for row in rows]
    assert {"red", "moped"} <= text[0]
    assert ({"dog", "skateboard"} <= text[1], text[2]) == (True, set())
    assert rows.max() == 1
    place = {word: number for number, word in enumerate(said.words)}
    assert said.vectors[place["moped"]].tolist() == [0, 2, 0]
    assert said.vectors[place["skateboard"]].tolist() == [0, 0, 0]  # this file knows no pieces
    spoken = int(rows.sum())
    known = sum(row[place[word]] for row in rows for word in ("red", "moped", "dog"))
    assert said.unknown == pytest.approx(1 - known / spoken)


def test_a_piece_counts_where_the_caption_has_its_word(words, vocabulary):
    column = {term: number for number, term in enumerate(vocabulary.terms)}
    weights = np.zeros((2, len(vocabulary)), dtype=np.float32)
    weights[:, [column["##ped"], column["##board"], column["dog"]]] = [3, 2, 1]
    captions = ["red moped", "skateboard"]
    found = semantic_at(
        csr_array(weights),
        vocabulary.caption_terms(captions),
        words.of_terms(vocabulary.terms, vocabulary.special),
        3,
        words=words.of_captions(captions, vocabulary),
    )
    # ##ped is the moped's, ##board nobody's, a dog is 45° from red; ##board is the skateboard's alone
    assert found == pytest.approx([(1 + 0 + np.sqrt(0.5)) / 3, 1 / 3])


def test_the_input_embeddings_of_a_model(tmp_path, vocabulary):
    model = masked_model("distilbert", terms=len(PIECES))
    model.save_pretrained(tmp_path / "tiny")
    (tmp_path / "tiny" / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    found = StaticEmbedding.open(str(tmp_path / "tiny"))
    inputs = model.get_input_embeddings().weight.detach().numpy()
    assert found.name.startswith("input embeddings of tiny ")
    vectors = found.of_terms(vocabulary.terms, vocabulary.special)
    for column, term in enumerate(vocabulary.terms):
        without = column in vocabulary.special or term.startswith("##")
        wanted = np.zeros(8) if without else inputs[PIECES.index(term)]
        assert np.array_equal(vectors[column], wanted), term
    said = found.of_captions(["moped"], vocabulary)
    assert said.words == ["moped"]
    pieces = inputs[[PIECES.index("mo"), PIECES.index("##ped")]]
    assert said.vectors[0] == pytest.approx(pieces.mean(axis=0))


def test_overlap_by_hand():
    first = np.array([[1, 2, 3], [4, 5, -1], [-1, -1, -1]])
    second = np.array([[3, 2, 9], [5, -1, -1], [-1, -1, -1]])
    assert overlap_at(first, second) == pytest.approx([2 / 3, 1 / 3, 0])
    refused(MismatchError, r"\(3, 3\) and \(3, 2\)", overlap_at, first, second[:, :2])


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_agreement_as_scipy_with_ties(seed):
    random = np.random.default_rng(seed)
    first, second = (np.stack([random.permutation(12)[:6] for _ in range(5)]) for _ in range(2))
    one, other = (-np.sort(-random.integers(0, 4, (5, 6)).astype(float), axis=1) for _ in range(2))
    found = rank_agreement(first, one, second, other)
    for query in range(5):
        common = sorted(set(first[query]) & set(second[query]))
        mine = [one[query][first[query].tolist().index(item)] for item in common]
        theirs = [other[query][second[query].tolist().index(item)] for item in common]
        if len(common) < 2 or len(set(mine)) == 1 or len(set(theirs)) == 1:
            assert np.isnan(found[query])
        else:
            assert found[query] == pytest.approx(kendalltau(mine, theirs).statistic)


def test_of_two_evaluations():
    random = np.random.default_rng(0)
    images, texts = random.normal(size=(30, 8)), random.normal(size=(60, 8))
    texts[:] += 0.7 * images.repeat(2, axis=0)
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(30), 2), 30)
    measures = ["R@1", "R@5", "MRR@10"]
    rough = images + random.normal(scale=0.4, size=images.shape)
    results = [evaluate(rows @ texts.T, None, truth, measures) for rows in (images, rough)]
    lists = [top_k(texts.astype(np.float32), rows.astype(np.float32), 10) for rows in (images, rough)]
    found = faithfulness(*results, *lists)
    mine, theirs = (result.per_query["t2i"]["R@5"] for result in results)
    assert found.pearson["R@5"] == pytest.approx(pearsonr(mine, theirs).statistic)
    assert list(found.pearson) == measures
    assert found.k == 10
    assert found.overlap == pytest.approx(
        np.mean([len(set(a) & set(b)) / 10 for a, b in zip(lists[0][0], lists[1][0], strict=True)])
    )
    assert 0 < found.kendall < 1
    assert (found.without_order, found.queries) == (0, 60)
    same = faithfulness(results[0], results[0], lists[0], lists[0])
    assert same.pearson == pytest.approx(dict.fromkeys(measures, 1.0))
    assert (same.overlap, same.kendall) == (1, 1)
    refused(DataError, "the dense result has no t2i R@7", faithfulness, *results, *lists, measures=["R@7"])
