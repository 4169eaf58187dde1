"""Recall of engines that miss items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from diptych.core.errors import MismatchError
from diptych.index import Hits, Recall, build_index, measure_recall


def hits_of(pairs_of, k):
    """Ragged lists of (id, score) as hits."""
    scores = np.full((len(pairs_of), max(map(len, pairs_of))), -np.inf, dtype=np.float32)
    for row, pairs in enumerate(pairs_of):
        scores[row, : len(pairs)] = [score for _, score in pairs]
    return Hits([[name for name, _ in pairs] for pairs in pairs_of], scores, k)


class Forgetful:
    """Stands for an index whose search misses chosen items."""

    def __init__(self, exact, missed):
        self.exact, self.missed = exact, missed
        self.options = {}

    def __len__(self):
        return len(self.exact)

    def engine(self):
        return self.exact.engine()

    def search_exact(self, queries, k):
        return self.exact.search(queries, k)

    def search(self, queries, k):
        hits = self.exact.search(queries, len(self.exact))
        return hits_of([[pair for pair in pairs if pair[0] not in self.missed][:k] for pairs in hits], k)


FIVE, PAIR, THREE, TWO = (
    np.diag([5, 4, 3, 2, 1]),
    [[2, 0], [1, 0], [1, 0], [0, 0]],
    [[3, 0], [2, 0], [1, 0]],
    [[2], [1]],
)
GIVEN, OWN = "given", "items of the index, each without itself"


def test_what_is_missed_counts(make_embeddings):
    """A query of image 0 does not count itself."""
    for rows, missed, k, source, value in [
        *((FIVE, "", 4, GIVEN, 1), (FIVE, "0", 4, GIVEN, 0.75), (FIVE, "012", 4, GIVEN, 0.25)),
        (FIVE, "4", 4, GIVEN, 1),
        (PAIR, "1", 2, GIVEN, 1),  # of equal items either will do
        *((THREE, "0", 1, GIVEN, 0), (THREE, "0", 1, OWN, 1), (THREE, "1", 1, OWN, 0)),
        *((TWO, "1", 2, GIVEN, 0.5), (TWO, "1", 2, OWN, 0)),  # as many as there are
    ]:
        index = Forgetful(build_index(make_embeddings(rows)), {f"image-{row}" for row in missed})
        query = np.ones((1, 5)) if rows is FIVE else np.eye(len(rows[0]))[:1]
        found = measure_recall(index, query, k, excluded=["image-0"] if source == OWN else None)
        assert (found.value, found.source) == (value, source)


def test_an_approximate_engine_reports_it_when_built(make_embeddings):
    embeddings = make_embeddings(count=400, width=32)
    exact = build_index(embeddings)
    assert "recall" not in exact.about
    assert exact.describe().endswith("exact")
    index = build_index(embeddings, "hnsw", m=4, ef_construction=8, ef_search=1)
    recall = Recall(**index.about["recall"])
    assert (recall.k, recall.queries, recall.items, recall.changes) == (10, 100, 400, 0)
    assert recall.options == {"ef_search": 1}
    # The same figure from the ids, by another way: sets of neighbours without the query itself.
    rows = np.sort(np.random.default_rng(0).choice(400, 100, replace=False))
    shares = []
    for row in rows.tolist():
        query = embeddings.rows[row : row + 1]
        sets = [
            {name for name in [n for n in where.search(query, 11).ids[0] if n != f"image-{row}"][:10]}
            for where in (index, exact)
        ]
        shares.append(len(sets[0] & sets[1]) / 10)
    assert recall.value == pytest.approx(np.mean(shares))
    assert recall.value < 0.999
    assert f"recall@10 {recall.value:.3f} against exact search (100 queries" in index.describe()
    better = measure_recall(index, embeddings.rows[:50], ef_search=400)
    assert better.value > recall.value
    assert better.options == {"ef_search": 400}


def test_on_given_queries_and_after_changes(make_embeddings, tmp_path):
    embeddings = make_embeddings(count=60)
    index = build_index(embeddings, "hnsw", sample=embeddings.rows[:7])
    recall = Recall(**index.about["recall"])
    assert (recall.queries, recall.source) == (7, "given")
    index.delete(["image-1"])
    index.add(["x", "y"], embeddings.rows[:2])
    assert index.about["recall"]["changes"] == 3
    assert "3 items changed since" in index.describe()


def test_nothing_to_measure_is_not_reported_as_a_figure(make_embeddings):
    for count in [0, 1]:
        index = build_index(make_embeddings(count=count), "hnsw")
        assert "recall" not in index.about
        assert "recall not measured" in index.describe()
    assert build_index(make_embeddings(count=5), "hnsw").about["recall"]["value"] == 1


def test_a_sample_of_another_width_is_refused_before_the_work(make_embeddings):
    with pytest.raises(
        MismatchError, match="sample vectors have width 3, the index holds vectors of width 16"
    ):
        build_index(make_embeddings(), "hnsw", sample=np.eye(3))


def test_against_a_reference_an_item_counts_by_what_it_is_not_by_its_score(make_embeddings):
    reference = build_index(make_embeddings([[9], [8], [7], [7], [1]]))
    shuffled = build_index(make_embeddings([[9], [1], [2], [3], [8]]))  # finds image-0, -4 and -3
    query = np.ones((1, 1))
    assert measure_recall(shuffled, query, 3, reference=reference).value == pytest.approx(2 / 3)
    assert measure_recall(shuffled, query, 1, reference=reference).value == 1
    assert measure_recall(shuffled, query, 2, reference=reference).value == 0.5
    # Of a reference twice as many are looked at: as good as the best, and beyond two of one.
    reference = build_index(make_embeddings([[7], [7], [7], [1]]))
    for first, value in (("image-1", 1), ("image-2", 0)):
        only = build_index(make_embeddings([[5]], ids=[first]))
        assert measure_recall(only, query, 1, reference=reference).value == value


def test_lists_of_different_lengths_count_by_what_there_is_to_find(make_bags):
    # Term 0 has two items of which one is found; terms 1 and 2 have one item each.
    exact = build_index(make_bags([[1, 0, 0], [3, 1, 0], [0, 0, 2]]))
    found = measure_recall(Forgetful(exact, {"image-0"}), csr_array(np.eye(3)), 10)
    assert found.value == pytest.approx((1 / 2 + 1 + 1) / 3)
