"""Measures of one ranker and comparison of models, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tiny_catalogue import NO_TITLE

from diptych.commerce.catalogue import Catalogue, Judged
from diptych.commerce.category_to_image.features import (
    CategoryFeatures,
    FeatureMaker,
    ProductFeatures,
    learning_texts,
)
from diptych.commerce.category_to_image.rankers import (
    BM25,
    CATEGORY_MEASURES,
    NDCG,
    RANKERS,
    Ranker,
    Scored,
    measure_ranker,
)
from diptych.commerce.category_to_image.results import compare_models
from diptych.core.errors import MismatchError, UsageError
from diptych.data.title_words import folded_by
from diptych.metrics import Bootstrap, GroundTruth
from tests.support.category_rows import titled

from ...encoders.tiny_pretrained import transformers_folder


class Given(Ranker):
    """Gives the rows that it was made with."""

    name, fingerprint, about = "given", "by hand", {}

    def __init__(
        self,
        products: np.ndarray | csr_array,
        categories: np.ndarray | csr_array,
        unranked: bool = False,
    ) -> None:
        self.products, self.categories, self.unranked = products, categories, unranked

    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        return self.products

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        return self.categories


def features_of(n: int) -> ProductFeatures:
    return titled(["a"] * n)


def categories_of(texts: Sequence[str]) -> CategoryFeatures:
    return CategoryFeatures(texts, np.zeros((len(texts), 2), dtype=np.float32), None, {})


def judged_of(relevant: np.ndarray, products: np.ndarray | None = None) -> Judged:
    """Of a matrix (categories, products) of booleans."""
    category, product = np.nonzero(relevant)
    q, n = relevant.shape
    truth = GroundTruth.from_pairs(product, category, n, q, np.full(q, -1))
    rows = np.arange(n) if products is None else products
    labels = np.argmax(relevant, axis=0)
    return Judged(np.arange(q), rows, truth, labels, "most-specific", "label", 0)


def scores(matrix: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of products and of categories whose products are the matrix (categories, products)."""
    given = np.array(matrix, dtype=np.float32)
    return np.ascontiguousarray(given.T), np.eye(len(given), dtype=np.float32)


RELEVANT = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=bool)

MATRIX = [
    [0.9, 0.2, 0.8, 0.1, 0.3, 0.0],  # relevant at 1 and 4
    [0.9, 0.8, 0.7, 0.6, 0.5, 0.4],  # at 3
    [0.1, 0.2, 0.3, 0.9, 0.8, 0.7],  # at 1, 2 and 3
]


def test_three_by_six_by_hand() -> None:
    products, texts = scores(MATRIX)
    ranker = Given(products, texts)
    result = measure_ranker(ranker, features_of(6), categories_of("c" * 3), judged_of(RELEVANT))
    expected = {
        "P@1": [1, 0, 1],
        "P@5": [2 / 5, 1 / 5, 3 / 5],
        "P@10": [2 / 10, 1 / 10, 3 / 10],
        "R-precision": [1 / 2, 0, 1],
        **{f"{name}@{k}": [(1 + 2 / 4) / 2, 1 / 3, 1] for name in ("mAP", "mAP-hits") for k in (5, 10)},
    }
    assert set(expected) == set(CATEGORY_MEASURES)
    expected["MRR"] = [1, 1 / 3, 1]
    expected["mAP"] = expected["mAP@10"]
    at = 1 / np.log2(np.arange(2, 8))  # relevant at 1 and 4; at 3; at 1, 2 and 3
    expected["nDCG@10"] = [(at[0] + at[3]) / (at[0] + at[1]), at[2], 1]
    for name, values in expected.items():
        assert result.per_query["t2i"][name] == pytest.approx(values), name
        assert result.value(name, "t2i") == pytest.approx(np.mean(values))
    # products that ask: 0 and 1 tie first with category 1, or lose to it; 3, 4 and 5 find their own
    assert result.per_query["i2t"]["R@1"].tolist() == pytest.approx([1 / 2, 0, 0, 1, 1, 1])
    assert result.score("P@1", "t2i").chance == pytest.approx((2 / 6 + 1 / 6 + 3 / 6) / 3)
    assert "mAP-hits@5" in result.protocol.compat
    assert result.protocol.about["setting"] == "most-specific"


SPARSE = np.array([[2.0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]], dtype=np.float32)


def test_a_product_without_a_common_word_is_not_retrieved() -> None:
    """Category 0 finds products 0 and 2, category 1 nothing, category 2 product 4 alone."""
    ranker = Given(csr_array(SPARSE.T.copy()), csr_array(np.eye(3, dtype=np.float32)), True)
    given = (features_of(6), categories_of("c" * 3), judged_of(RELEVANT))
    result = measure_ranker(ranker, *given)
    values = result.per_query["t2i"]
    assert values["P@1"].tolist() == [1, 0, 1]
    assert values["P@10"].tolist() == pytest.approx([1 / 10, 0, 1 / 10])
    assert values["mAP@10"].tolist() == pytest.approx([1 / 2, 0, 1 / 3])
    assert values["mAP-hits@10"].tolist() == pytest.approx([1, 0, 1])
    assert values["R-precision"].tolist() == pytest.approx([1 / 2, 0, 1 / 3])
    assert result.per_query["i2t"]["R@1"].tolist() == pytest.approx([1, 0, 0, 0, 1, 0])
    assert "not retrieved" in result.protocol_line()
    scored = Scored.of(ranker, *given)
    assert scored.first(3)[0].tolist() == [[0, 2, -1], [-1, -1, -1], [4, -1, -1]]
    assert scored.first(1, "i2t")[0][:, 0].tolist() == [0, -1, 0, -1, 2, -1]
    # By the plain tie rule, products without a word would give category 1 a share of a hit.
    tied = Given(ranker.products, ranker.categories)
    assert measure_ranker(tied, *given).per_query["t2i"]["P@1"][1] == pytest.approx(1 / 6)
    # The whole gallery still makes the chance level.
    assert result.score("P@1", "t2i").chance == pytest.approx((2 / 6 + 1 / 6 + 3 / 6) / 3)


def test_dense_rows_of_zeros_are_not_retrieved_and_stand_above_nothing() -> None:
    """A picture that is missing has a row of zeros: it must not beat pictures whose cosine is below 0."""
    products = np.array([[-0.5], [0], [-0.2], [0.1], [0], [0.3]], dtype=np.float32)
    texts = np.array([[1], [1], [0]], dtype=np.float32)
    ranker = Given(products, texts, True)
    given = (features_of(6), categories_of("c" * 3), judged_of(RELEVANT))
    values = measure_ranker(ranker, *given).per_query["t2i"]
    # Retrieved, best first: products 5, 3, 2, 0. Category 0 has 0 (last) and 1 (never), category 1 has 2 (third).
    assert values["mAP@10"].tolist() == pytest.approx([1 / 4 / 2, 1 / 3, 0])
    rows, found = Scored.of(ranker, *given).first(5)
    assert rows.tolist() == [[5, 3, 2, 0, -1], [5, 3, 2, 0, -1], [-1] * 5]
    assert found[0].tolist() == pytest.approx([0.3, 0.1, -0.2, -0.5, 0])
    guess, _ = Scored.of(ranker, *given).first(1, "i2t")
    assert guess[:, 0].tolist() == [0, -1, 0, 0, -1, 0]
    nothing = Given(np.zeros((6, 1), np.float32), texts, True)
    assert measure_ranker(nothing, *given).per_query["t2i"]["mAP@10"].tolist() == [0, 0, 0]


def test_agrees_with_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    random = np.random.default_rng(4)
    labels = random.integers(0, 12, 60)
    relevant = np.arange(12)[:, None] == labels
    relevant[:, 0] |= ~relevant.any(axis=1)
    products, texts = (random.normal(size=size).astype(np.float32) for size in ((60, 8), (12, 8)))
    exact = texts.astype(np.float64) @ products.T.astype(np.float64)
    qrels = [ir_measures.Qrel(f"{c}", f"{p}", int(relevant[c, p])) for c in range(12) for p in range(60)]
    run = [ir_measures.ScoredDoc(f"{c}", f"{p}", exact[c, p]) for c in range(12) for p in range(60)]
    measures = {
        "P@1": ir_measures.P @ 1,
        "P@5": ir_measures.P @ 5,
        "P@10": ir_measures.P @ 10,
        "R-precision": ir_measures.Rprec,
        "mAP-positives@5": ir_measures.AP @ 5,
        "mAP-positives@10": ir_measures.AP @ 10,
        "mAP": ir_measures.AP,
        "MRR": ir_measures.RR,
        NDCG: ir_measures.nDCG @ 10,
    }
    given = (Given(products, texts), features_of(60), categories_of("c" * 12), judged_of(relevant))
    result = measure_ranker(*given, measures=[*measures])
    for ours, theirs in measures.items():
        found = {one.query_id: one.value for one in ir_measures.iter_calc([theirs], qrels, run)}
        name = ours if isinstance(ours, str) else ours.name
        assert result.per_query["t2i"][name] == pytest.approx([found[f"{c}"] for c in range(12)]), name


NONE = Bootstrap(0)


def values(**models: list[list[float]]) -> dict[str, dict[str, list[np.ndarray]]]:
    """The same values by every measure."""
    return {
        model: {name: [np.array(seed) for seed in seeds] for name in CATEGORY_MEASURES}
        for model, seeds in models.items()
    }


def test_sign_flips_by_hand() -> None:
    """Three categories, all better by one: of eight swaps two are as large; averaged over seeds first."""
    one, *others = compare_models(values(base=[[0, 0, 0]], other=[[1, 1, 0], [1, 1, 2]]), "base", NONE)
    assert (one.run, one.measure, one.direction, one.low, one.better) == ("other", "P@1", "t2i", None, True)
    assert one.difference == pytest.approx(1)
    assert one.p_randomisation == pytest.approx(2 / 8)
    assert (one.p, one.verdict, len(others)) == (1, "", 7)


WORDS = ["red", "blue", "dress", "dresses", "belt", "men", "men's", "t-shirt", "for"]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@pytest.fixture(scope="module")
def maker(shop: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> FeatureMaker:
    """CLIP for pictures, LSA for texts."""
    folder = tmp_path_factory.mktemp("models")
    clip = transformers_folder("clip", folder / "clip", limit=64)
    return FeatureMaker.of(str(clip), "lsa:12", learn_from=learning_texts(shop), cache=folder / "cache")


def test_sentence(maker: FeatureMaker, shop: Catalogue) -> None:
    products, categories = maker.products(shop), maker.categories(["Coats", "Zeppelins"])
    ranker = RANKERS["sentence"](products)
    scores = ranker.category_rows(categories) @ ranker.product_rows(products).T
    expected = maker.text.encode(["Coats"]) @ maker.text.encode(list(shop.titles)).T
    expected[:, list(shop.ids).index(NO_TITLE)] = 0
    np.testing.assert_allclose(scores[:1], expected, atol=1e-5)
    assert ranker.unranked
    assert not scores[1].any()  # the encoder knows no word of it: no ranking
    assert ranker.describe()["encoder"]["kind"] == "lsa"


def test_rows_of_another_encoder(maker: FeatureMaker, shop: Catalogue, tmp_path: Path) -> None:
    other = FeatureMaker.of("grid", "lsa:5", learn_from=learning_texts(shop), cache=tmp_path)
    products = maker.products(shop)
    for name in ("sentence", "clip"):
        ranker = RANKERS[name](products)
        with pytest.raises(MismatchError, match=f"{name} was made for rows of .* encoder"):
            ranker.category_rows(other.categories(["Coats"]))
        with pytest.raises(MismatchError, match="these are of"):
            ranker.product_rows(other.products(shop))
    assert len({RANKERS[name](products).fingerprint for name in ("sentence", "clip")}) == 2
    for image in ("grid", None):  # clip needs a dual encoder
        without = FeatureMaker.of(image, "lsa:5", learn_from=learning_texts(shop), cache=tmp_path)
        with pytest.raises(UsageError, match=f"images were encoded by {str(image).lower()}"):
            RANKERS["clip"](without.products(shop))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(texts, min_size=1, max_size=8),
    st.lists(texts, min_size=1, max_size=4),
)
def test_against_the_library(titles: list[str], queries: list[str]) -> None:
    assume(any(titles))
    products, split = titled(titles), folded_by("plural")
    ranker = BM25(products)
    assert ranker.unranked
    found = (ranker.category_rows(categories_of(queries)) @ ranker.product_rows(products).T).toarray()
    library = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy")
    library.index([split(title) for title in titles], show_progress=False)
    for query, row in zip(queries, found, strict=True):
        known = [word for word in split(query) if word in library.vocab_dict]
        if known:
            np.testing.assert_allclose(row, library.get_scores(known), rtol=1e-5, atol=1e-6)
        # Nothing in common and a score of 0 are the same thing.
        assert (row > 0).tolist() == [bool(set(split(title)) & set(split(query))) for title in titles]
