"""Measuring a head on a split: each number against its own definition, and the way through JSON."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import ImageError, MismatchError, UsageError
from diptych.data.collection import Collection
from diptych.encoders.embeddings import Embeddings, EncodedCollection, SparseEmbeddings, canonical_rows
from diptych.evaluation import compare, evaluate
from diptych.metrics import GroundTruth
from diptych.report.sparse import sparse_page
from diptych.sparse.evaluate import measure_sparsified
from diptych.sparse.measures import StaticEmbedding, exact_at, flops, semantic_at
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.sparse.vocabulary import SPECIAL_TERMS, TermVocabulary, bert_tokenizer

WORDS = ["dog", "cat", "red", "blue", "runs", "sits", "mo", "##ped", "grass", "snow"]
PICTURES, EACH = 12, 2


VOCABULARY = TermVocabulary(bert_tokenizer([*SPECIAL_TERMS, *WORDS]))
_SAID = np.random.default_rng(5)
CAPTIONS = [
    "",
    *(" ".join(_SAID.choice(["dog", "cat", "red", "moped", "snow"], 3)) for _ in range(PICTURES * EACH)),
][: PICTURES * EACH]
KNOWN = ["dog", "cat", "red", "blue", "moped", "snow"]
EMBEDDING = StaticEmbedding(
    "made up",
    {word: row for row, word in enumerate(KNOWN)},
    np.random.default_rng(2).normal(size=(len(KNOWN), 4)).astype(np.float32),
)


def dense_rows():
    random = np.random.default_rng(0)
    images = random.normal(size=(PICTURES, 6)).astype(np.float32)
    texts = images.repeat(EACH, axis=0) + random.normal(scale=0.8, size=(PICTURES * EACH, 6))
    sides = [
        Embeddings([f"{kind}{row}" for row in range(len(rows))], rows, "tower", "pictures", kind, {})
        for kind, rows in (("image", images), ("text", texts.astype(np.float32)))
    ]
    about = {"dataset": "made", "split": "test", "data": "pictures"}
    return EncodedCollection(*sides, np.repeat(np.arange(PICTURES), EACH), about)


ENCODED = dense_rows()


def sparse_rows():
    """A head drawn at random; special terms have weights too, as a published head gives them."""
    head = np.random.default_rng(1).normal(size=(6, len(VOCABULARY)))
    sides = []
    for side in (ENCODED.images, ENCODED.texts):
        rows = canonical_rows(np.log1p(np.maximum(0, side.rows @ head)).astype(np.float32))
        sides.append(SparseEmbeddings(side.ids, rows, VOCABULARY.terms, "head", side.data, side.kind, {}))
    own = replace(sides[1], rows=canonical_rows(VOCABULARY.caption_terms(CAPTIONS)))
    return SparsifiedCollection(*sides, ENCODED.caption_image, {**ENCODED.about, "expansion": "c"}, own)


SPARSE = sparse_rows()
measured = partial(measure_sparsified, ENCODED, SPARSE, VOCABULARY)


@pytest.fixture(scope="module")
def found():
    return measured(CAPTIONS, embedding=EMBEDDING, k=4)


def test_every_number_is_that_of_its_definition(found):
    truth = GroundTruth.from_caption_image(ENCODED.caption_image, PICTURES)
    images, texts = SPARSE.images.rows, SPARSE.texts.rows
    names = ["R@1", "R@5", "R@10", "MRR@10", "rsum"]
    dense = evaluate(ENCODED.images.rows, ENCODED.texts.rows, truth, names)
    sparse = evaluate((images @ texts.T).toarray(), None, truth, names)
    assert found.dense.values() == pytest.approx(dense.values())
    assert found.sparse.values() == pytest.approx(sparse.values())
    assert found.kept("R@5", "t2i") == sparse.value("R@5", "t2i") / dense.value("R@5", "t2i")
    assert found.flops == flops(texts, images)
    assert found.nonzeros == {"images": images.nnz / PICTURES, "texts": texts.nnz / (PICTURES * EACH)}
    assert found.empty == {"images": 0, "texts": 0}
    terms = VOCABULARY.caption_terms(CAPTIONS)
    exact = exact_at(texts, terms, 4, left_out=VOCABULARY.special)
    semantic = semantic_at(
        texts,
        terms,
        EMBEDDING.of_terms(VOCABULARY.terms, VOCABULARY.special),
        4,
        words=EMBEDDING.of_captions(CAPTIONS, VOCABULARY),
        left_out=VOCABULARY.special,
    )
    assert found.deviation.exact == exact.mean()
    assert found.deviation.semantic == semantic.mean()
    assert np.array_equal(found.values["exact"], exact)
    assert np.array_equal(found.values["semantic"], semantic)
    assert found.deviation.unknown_words == 0
    compared = compare({"dense": found.dense, "sparse": found.sparse}, test="t", samples=0)
    for one in compared.differences:
        key = one.measure if one.direction == "both" else f"{one.direction} {one.measure}"
        assert found.p[key] == one.p
    assert found.faithful["t2i"].queries == PICTURES * EACH
    assert found.values["overlap i2t"].shape == (PICTURES,)
    assert found.faithful["i2t"].overlap == found.values["overlap i2t"].mean()


def test_terms_without_a_vector_are_counted(found):
    unknown = others = 0
    own = SPARSE.caption_terms.toarray()
    for row, weights in enumerate(SPARSE.texts.rows.toarray()):
        order = [column for column in np.argsort(-weights, kind="stable") if column not in VOCABULARY.special]
        for column in order[:4]:
            if weights[column] > 0 and not own[row, column]:
                others += 1
                unknown += VOCABULARY.terms[column] not in EMBEDDING.rows
    assert 0 < unknown < others
    assert found.deviation.unknown_terms == unknown / others


def test_own_terms_only():
    found = measure_sparsified(ENCODED, replace(SPARSE, texts=SPARSE.unexpanded), VOCABULARY)
    own = SPARSE.texts.rows.multiply(SPARSE.caption_terms).tocsr()
    assert found.nonzeros["texts"] == np.sum(own.toarray() > 0) / (PICTURES * EACH)
    assert found.empty["texts"] >= 1 / (PICTURES * EACH)  # the empty caption has no term of its own
    assert found.about["expansion in use"] == "own terms only"
    assert found.deviation.semantic is None
    assert "semantic" not in found.values
    assert not any("Semantic" in name for name, _ in found.tables()[1].texts)
    assert "rows without terms" in found.sparse.protocol.about


def test_tables_charts_and_line(found):
    kept, cost, faithful = ({row[0].text: row for row in table.rows} for table in found.tables())
    assert kept["t2i R@1"][1].text == f"{100 * found.dense.value('R@1', 't2i'):.1f}"
    assert kept["t2i R@1"][2].value == found.sparse.value("R@1", "t2i")
    assert kept["t2i R@1"][3].text == f"{100 * found.kept('R@1', 't2i'):.1f} %"
    assert cost["FLOPs: terms that a caption and an image share"][1].text == f"{found.flops:.2f}"
    exact = cost["Exact@4: leading terms that the caption contains"][1]
    assert exact.text == f"{100 * found.deviation.exact:.1f} %"
    assert faithful["overlap of the top 10"][2].value == found.faithful["t2i"].overlap
    for table in found.tables():
        assert table.json()
    (chart,) = found.charts()
    overlap = found.values["overlap t2i"]
    assert chart.series[1].y[9] == pytest.approx(100 * (np.rint(10 * overlap) == 9).mean())
    for said in ("dataset made", "split test", "encoder tower", "head head", "f_enc made up"):
        assert said in found.lines()[0]
    way = replace(found.faithful["t2i"], kendall=math.nan)
    table = replace(found, faithful={**found.faithful, "t2i": way}).tables()[2]
    assert table.rows[-1][2].text == "–"  # what has no value is a dash


def test_the_page(found):
    texts = ["a <b>dog</b> on snow", *CAPTIONS[1:]]
    ids, names = (
        [f"{kind}{row}" for row in range(n)] for kind, n in (("image", PICTURES), ("text", len(texts)))
    )
    parts = ["test"] * PICTURES, _NoImages(), np.arange(PICTURES)
    collection = Collection("made", ids, texts, names, ENCODED.caption_image, *parts)
    page = sparse_page(VOCABULARY, SPARSE, collection, found, "diptych sparse train RUN")
    images, captions, matches = (section.blocks for section in page.sections[1:])
    rows = SPARSE.images.rows.toarray()
    rows[:, [column for column in range(len(VOCABULARY)) if not VOCABULARY.shown(column)]] = 0
    for card in images[0].cards:
        place = ids.index(card.name)
        best = int(rows[place].argmax())
        name, share, number, strong = card.bars[0]
        shown = VOCABULARY.shown(best), 1.0, f"{rows[place, best]:.2f}"
        assert (name, share, number) == shown
        assert strong == bool(VOCABULARY.caption_terms(collection.captions_of(place))[:, [best]].sum())
    assert len(captions[0].cards) == 10
    whole = SPARSE.texts.rows.toarray().astype(np.float64) @ SPARSE.images.rows.toarray().T
    for gallery in matches:
        score = whole[names.index(gallery.query.name), ids.index(gallery.cards[0].name)]
        assert gallery.cards[0].score == f"{score:.3f}"
    html = page.html()
    assert "a &lt;b&gt;dog&lt;/b&gt; on snow" in html
    gone = {card.name for block in (*images, *matches) for card in block.cards}
    assert f"{len(gone)} images could not be read" in html
    assert f"{100 * found.kept('R@5', 't2i'):.1f} % of what dense embeddings find" in html


class _NoImages:
    def read(self, row):
        raise ImageError(f"image {row} is gone", "fetch it again")


def test_things_that_do_not_belong_together():
    refused(UsageError, "give the captions", measured, embedding=EMBEDDING)
    other = TermVocabulary(bert_tokenizer([*SPECIAL_TERMS, "other"]))
    refused(MismatchError, "take the vocabulary of the head", measure_sparsified, ENCODED, SPARSE, other)
    turned = replace(SPARSE, texts=replace(SPARSE.texts, ids=list(SPARSE.texts.ids)[::-1]))
    said = "24 captions have dense rows, 12 and 24 sparse ones, or in another order"
    refused(MismatchError, said, measure_sparsified, ENCODED, turned, VOCABULARY)


def test_rows_without_any_term():
    nothing = csr_array(SPARSE.texts.rows.shape, dtype=np.float32)
    found = measure_sparsified(
        ENCODED, replace(SPARSE, texts=replace(SPARSE.texts, rows=nothing)), VOCABULARY
    )
    assert found.flops == 0
    assert found.empty["texts"] == 1
    assert found.sparse.value("R@1", "t2i") == pytest.approx(1 / PICTURES)  # chance
    assert found.faithful["t2i"].overlap == 0
    assert math.isnan(found.faithful["t2i"].pearson["R@1"])
