"""The engines over 8-bit postings: exact search, weights of eight bits alone, two stages."""

from __future__ import annotations

import concurrent.futures
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mapped import is_mapped
from refusals import refused
from scipy.sparse import csr_array, vstack

from diptych.core.errors import DataError, MismatchError, StorageError, UsageError
from diptych.index import Recall, build_index, measure_recall, open_index
from diptych.index.engines.inverted import InvertedIndex
from diptych.index.kernels import load_kernels
from diptych.index.segments import Segment


def bags_of(count, width, seed, density=0.15, power=1.0):
    """Random bags in which some terms are in most documents, the last in almost none."""
    rng = np.random.default_rng(seed)
    share = np.minimum(0.9, density * width / (2 * (1 + np.arange(width))))
    rows = rng.gamma(1.0, 1.0, (count, width)) ** power * (rng.random((count, width)) < share)
    return csr_array(rows.astype(np.float32))


def best(queries, rows, k, alive=None):
    """Slots and scores by a float64 product and a stable sort of its float32 rounding."""
    scores = (queries.astype(np.float64) @ rows.astype(np.float64).T).toarray().astype(np.float32)
    if alive is not None:
        scores[:, ~alive] = 0
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [
        [(slot, scores[query, slot]) for slot in row if scores[query, slot] > 0]
        for query, row in enumerate(order)
    ]


def check(index, queries, rows, k, alive=None):
    for mine, wanted in zip(index.search(queries, k), best(queries, rows, k, alive), strict=True):
        assert len(mine) == len(wanted)
        np.testing.assert_allclose([score for _, score in mine], [score for _, score in wanted], rtol=1e-6)
        assert sorted(name for name, _ in mine) == sorted(f"image-{slot}" for slot, _ in wanted) or len(
            {name for name, _ in mine} ^ {f"image-{slot}" for slot, _ in wanted}
        ) <= 2 * sum(np.isclose(score, wanted[-1][1], rtol=1e-6) for _, score in wanted)


def test_against_the_plain_product(make_bags):
    for power in [1.0, 4.0]:
        for share in [0.0, 0.05, 2.0]:
            rows, queries = bags_of(5000, 120, 0, power=power), bags_of(70, 120, 1, power=power)
            index = build_index(make_bags(rows), hub_share=share)
            for k in (1, 10, 700):
                check(index, queries, rows, k)


def test_scores_do_not_depend_on_how_one_asks(make_bags, tmp_path):
    rows, queries = bags_of(3000, 80, 2), bags_of(40, 80, 3)
    index = build_index(make_bags(rows))
    hits = index.search(queries, 20)
    singly = [next(iter(index.search(queries[[row]], 20))) for row in range(40)]
    assert singly == list(hits)
    assert [pairs[:5] for pairs in hits] == list(index.search(queries, 5))
    others = build_index(make_bags(rows), hub_share=0.5), open_index(index.save(tmp_path / "index"))
    for other in others:
        assert list(other.search(queries, 20)) == list(hits)
    in_parts = build_index(make_bags(rows[:1500]))
    for start in range(1500, 3000, 300):
        in_parts.add([f"image-{slot}" for slot in range(start, start + 300)], rows[start : start + 300])
    assert list(in_parts.search(queries, 20)) == list(hits)


def test_equal_documents_come_by_slot_whatever_their_number(make_bags):
    row = bags_of(1, 40, 4, density=0.5)
    rows = csr_array(vstack([row] * 20_000, format="csr"))  # more candidates than there is room for
    index = build_index(make_bags(rows))
    hits = index.search(row, 5)
    assert hits.ids == [[f"image-{slot}" for slot in range(5)]]
    assert len(set(hits.scores[0].tolist())) == 1


@pytest.fixture
def short_tail(monkeypatch):
    monkeypatch.setattr("diptych.index.segments._TAIL", (32, 4000))


def test_single_insertions_are_merged(make_bags, short_tail):
    rows = bags_of(600, 30, 10)
    index = InvertedIndex.build(make_bags(rows[:1]))
    for slot in range(1, 600):
        index.add([f"image-{slot}"], rows[[slot]])
        if slot % 50 == 0:
            index._store.settle()
            sizes = [len(part) for part in index._store.parts]
            assert sum(sizes) == slot + 1
            assert len(sizes) <= 4
            assert not index._store.parts[0].few
            check(index, rows[:20], rows[: slot + 1], 10)
    assert index.search(rows, 10).ids == build_index(make_bags(rows)).search(rows, 10).ids


def test_a_merge_goes_on_in_the_background(make_bags, short_tail, monkeypatch, tmp_path):
    rows, queries = bags_of(300, 30, 11), bags_of(20, 30, 12)
    go_on, build = threading.Event(), Segment.build
    monkeypatch.setattr(Segment, "build", lambda *given: go_on.wait() and build(*given))
    go_on.set()
    index = InvertedIndex.build(make_bags(rows[:200]))
    go_on.clear()
    for slot in range(200, 290):
        index.add([f"image-{slot}"], rows[[slot]])
    assert [len(part) for part in index._store.parts] == [200, 90]  # none of it is done
    index.delete(["image-233"])
    index.add([f"image-{slot}" for slot in range(290, 300)], rows[290:])
    index.add(["image-233"], rows[[233]])
    before = list(index.search(queries, 20))
    go_on.set()
    index._store.settle()
    assert [len(part) for part in index._store.parts] == [301]  # what came meanwhile was long, too
    assert list(index.search(queries, 20)) == before
    order = [*range(233), *range(234, 300), 233]
    fresh = build_index(make_bags(rows[order], ids=[f"image-{slot}" for slot in order]))
    assert before == list(fresh.search(queries, 20))
    folder = index.save(tmp_path / "index")
    assert list(open_index(folder).search(queries, 20)) == before


def test_an_error_in_the_background_is_raised_once_and_nothing_is_lost(
    make_bags, short_tail, monkeypatch, tmp_path
):
    rows = bags_of(200, 30, 13)
    index = InvertedIndex.build(make_bags(rows[:100]))
    with monkeypatch.context() as broken:
        broken.setattr(Segment, "build", lambda *_: 1 / 0)
        index.add([f"image-{slot}" for slot in range(100, 190)], rows[100:190])
        concurrent.futures.wait([index._store._merge])
    refused(ZeroDivisionError, "division", index.add, ["image-190"], rows[[190]])
    assert "image-190" not in index
    check(index, rows[:20], rows[:190], 10)
    index.add([f"image-{slot}" for slot in range(190, 200)], rows[190:])
    assert open_index(index.save(tmp_path / "index")).ids == [f"image-{slot}" for slot in range(200)]
    check(index, rows, rows, 10)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    path=st.lists(st.sampled_from(["add", "delete", "replace", "settle"]), max_size=12),
)
def test_any_changes_equal_a_fresh_build(make_bags, seed, path):
    """With a tail of two documents, so that the thread is busy while others are added, deleted and found."""
    rng, rows, queries = np.random.default_rng(seed), bags_of(200, 20, seed), bags_of(5, 20, seed + 1)
    index = InvertedIndex.build(make_bags(rows[:20]))
    slots = {f"image-{slot}": slot for slot in range(20)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diptych.index.segments._TAIL", (2, 4000))
        patch.setattr("diptych.index.segments._RATIO", 2)
        for step in path:
            if step == "settle":
                index._store.settle()
                continue
            chosen = rng.choice(list(slots), 3, replace=False).tolist()
            names = [f"image-{rng.integers(1000, 10**9)}" for _ in range(5)] if step == "add" else chosen
            for name in names if step != "add" else ():
                del slots[name]
            if step == "delete":
                index.delete(names)
                continue
            new = rng.integers(0, 200, len(names)).tolist()
            index.add(names, rows[new], replace=step == "replace")
            slots |= dict(zip(names, new, strict=True))
            fresh = build_index(make_bags(rows[list(slots.values())], ids=list(slots)))
            for k in (1, 7, 300):
                assert list(index.search(queries, k)) == list(fresh.search(queries, k))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.05, 0.5]), k=st.sampled_from([1, 5, 130, 3000])
)
def test_what_is_left_by_its_bounds_is_not_missed(make_bags, seed, share, k):
    """Documents in order of their topic, some groups without any term, weights of few values: skipped, tied, few."""
    load_kernels()
    rng = np.random.default_rng(seed)
    count, width = 2000, 40
    topic = np.sort(rng.integers(0, 6, count))
    liked = rng.random((7, width)) < 0.4
    dense = rng.integers(1, 4, (count, width)) * (liked[topic] & (rng.random((count, width)) < 0.5))
    dense[300:900] *= rng.random((600, 1)) < 0.01
    queries = rng.integers(1, 4, (6, width)) * liked[rng.integers(0, 7, 6)] * (rng.random((6, width)) < 0.7)
    alive = rng.random(count) < rng.choice([0.1, 1.0])
    index = build_index(make_bags(dense), hub_share=share)
    index.delete([f"image-{slot}" for slot in np.flatnonzero(~alive)])
    scores = (queries @ dense.T) * alive
    for row, mine in enumerate(index.search(queries, k)):
        order = [slot for slot in np.argsort(-scores[row], kind="stable").tolist() if scores[row, slot] > 0]
        assert mine == [(f"image-{slot}", float(scores[row, slot])) for slot in order[:k]]


def test_saving_maps_the_files_and_drops_tombstones(make_bags, tmp_path):
    bags = make_bags(count=300)
    index = InvertedIndex.build(bags)
    assert np.shares_memory(index._store.parts[0].rows.weights, bags.rows.data)
    index.delete(["image-1"])
    index.add(["late"], bags.rows[:1])
    folder = index.save(tmp_path / "index")
    for saved in (index, open_index(folder)):
        assert saved.tombstones == 0
        (part,) = saved._store.parts
        assert len(part) == 300
        assert is_mapped(part.rows.weights)
        assert is_mapped(part.postings.hubs)
        assert saved.ids[-1] == "late"
    two = InvertedIndex.build(bags)
    two.add(["late"], bags.rows[:1])  # a second segment, no tombstones
    assert open_index(two.save(tmp_path / "two")).ids == [*bags.ids, "late"]


def test_a_query_of_very_many_terms_passes_over_what_is_deleted(make_bags):
    rows = csr_array(np.arange(1, 4, dtype=np.float32)[:, None] * np.ones((3, 20_000), np.float32))
    index = build_index(make_bags(rows))
    index.delete(["image-2"])
    assert index.search(rows[:1], 3).ids == [["image-1", "image-0"]]


def test_damaged_numbers_of_mapped_files_reach_no_other_memory(make_bags, tmp_path, monkeypatch):
    index = build_index(make_bags(count=500, width=60), hub_share=0.3)
    folder = index.save(tmp_path / "index")
    for name in ("columns", "postings.documents"):
        array = np.load(folder / f"{name}.npy", mmap_mode="r+")
        array[:] = np.iinfo(array.dtype).max
        array.flush()
    hits = open_index(folder).search(np.ones((3, 60)), 10)  # nonsense, but no crash; verify=True refuses it
    assert len(hits) == 3
    for module in ("segments", "engines.inverted"):
        monkeypatch.setattr(f"diptych.index.{module}.can_compile", lambda: False)
    folder = build_index(make_bags(count=500, width=60)).save(tmp_path / "without-numba")
    columns = np.load(folder / "columns.npy", mmap_mode="r+")
    columns[:] = 10**6
    columns.flush()
    monkeypatch.undo()  # postings are built at the first search
    opened = open_index(folder)
    with monkeypatch.context() as without:
        without.setattr("diptych.index.segments.can_compile", lambda: False)
        refused(StorageError, "a file of the index is corrupt", opened.search, np.ones((3, 60)), 10)
    load_kernels()
    refused(StorageError, "a file of the index is corrupt", opened.search, np.ones((3, 60)), 10)


def pair_scores(rows, query):
    """The stated sum: in double precision, four running sums over a document's terms, rounded once."""
    scores = []
    for start, end in pairwise(rows.indptr.tolist()):
        products = rows.data[start:end].astype(np.float64) * query[rows.indices[start:end]].astype(np.float64)
        sums, whole = [0.0] * 4, (end - start) // 4 * 4
        for place, product in enumerate(products.tolist()):
            sums[place % 4 if place < whole else 0] += product
        scores.append(np.float32((sums[0] + sums[1]) + (sums[2] + sums[3])))
    return np.array(scores)


@pytest.mark.parametrize("share", [0.0, 0.05, 2.0])
def test_bit_for_bit_whatever_the_weights(make_bags, share):
    for items, asked in (
        ((-30, 15), (-3, 3)),  # 45 orders of magnitude
        ((0, 0), (-5, 5)),  # equal weights
        ((-24, -19), (-25, -20)),  # scores near the smallest
        ((-30.1, -30), (-14.2, -14)),  # scores of a few bits
    ):
        rng = np.random.default_rng(5)
        rows, queries = (
            csr_array((10.0 ** rng.uniform(*of, (count, 12)) * (rng.random((count, 12)) < 0.3)).astype("f4"))
            for count, of in ((1500, items), (6, asked))
        )
        index = build_index(make_bags(rows), hub_share=share)
        for k in (1, 10, 1500):
            for mine, query in zip(index.search(queries, k), queries.toarray(), strict=True):
                scores = pair_scores(rows, query)
                order = [slot for slot in np.argsort(-scores, kind="stable").tolist() if scores[slot] > 0]
                assert mine == [(f"image-{slot}", scores[slot].item()) for slot in order[:k]]


# Weights of eight bits alone.


def test_scores_are_near_and_in_order(make_bags):
    bags = make_bags(count=900, width=60)
    exact, index = build_index(bags), build_index(bags, "impacts")
    queries = bags.rows[:50]
    mine, best = index.search(queries, 900), exact.search(queries, 900)
    for few, all_of_them in zip(mine, best, strict=True):
        truth = dict(all_of_them)
        scores = [score for _, score in few]
        assert scores == sorted(scores, reverse=True)
        # Each weight is within half a code of 255, the query's whole numbers are finer.
        for name, score in few:
            assert score == pytest.approx(truth[name], rel=0.02, abs=0.05)
    assert measure_recall(index, queries, reference=exact).value > 0.95


def test_its_recall_at_build_is_against_the_weights_themselves(make_bags):
    rng = np.random.default_rng(1)
    rows = np.zeros((400, 3))
    rows[:, 0] = 1000 + rng.random(400)  # one code for all of them
    rows[:, 1] = 1
    index = build_index(make_bags(rows), "impacts", sample=[[1, 0, 0]])
    recall = Recall(**index.about["recall"])
    best = set(np.argsort(-rows[:, 0])[:10].tolist())
    assert recall.value == pytest.approx(len(best & set(range(10))) / 10)
    assert recall.value < 1
    assert "recall@10" in index.describe()


def test_ties_and_tombstones(make_bags, tmp_path):
    index = build_index(make_bags([[1, 0], [1, 0], [0, 1], [1, 1]]), "impacts")
    assert index.search([[1, 0]], 9).ids == [["image-0", "image-1", "image-3"]]
    index.delete(["image-0"])
    opened = open_index(index.save(tmp_path / "index"))
    for one in (index, opened):
        assert (len(one), one.tombstones) == (3, 1)
        assert one.search([[1, 0]], 9).ids == [["image-1", "image-3"]]
        assert one.search([[0, 0]], 9).ids == [[]]
    opened.delete(["image-1", "image-2", "image-3"])
    assert opened.search([[1, 1]], 2).ids == [[]]

    index = build_index(make_bags(np.empty((0, 4))), "impacts")
    assert index.search(np.ones((1, 4)), 3).ids == [[]]
    assert "recall" not in index.about
    assert len(open_index(index.save(tmp_path / "empty"))) == 0


def test_what_needs_the_weights_or_more_terms_than_can_be_summed_is_refused(make_bags):
    index = build_index(make_bags(), "impacts")
    refused(UsageError, "impacts engine cannot add items", index.add, ["new"], np.ones((1, 40)))
    said = r"cannot search exactly: it keeps 8-bit weights only.*inverted"
    refused(UsageError, said, index.search_exact, np.ones((1, 40)), 3)
    refused(UsageError, "cannot be rebuilt", index.rebuild)
    bags = make_bags(np.ones((3, 16_001)))  # not answered with nothing; the exact engine takes them
    with pytest.raises(UsageError, match="16,001 terms, sums of 8-bit weights hold 16,000"):
        build_index(bags, "impacts", sample=np.eye(1, 16_001)).search(bags.rows, 2)
    assert build_index(bags).search(bags.rows[:1], 2).ids == [["image-0", "image-1"]]
    most = make_bags(np.ones((3, 16_000)))  # the most that can be summed
    assert build_index(most, "impacts").search(most.rows[:1], 2).ids == [["image-0", "image-1"]]


# A few terms first, all of them for what these find.


def test_candidates_are_sorted_by_the_whole_query(make_bags):
    # The first stage, by term 0, hands on images 0 and 1; term 1 turns them round. Image 3 is never seen.
    index = build_index(make_bags([[3, 0], [2, 5], [1, 9], [0, 50]]), "cascade", candidates=2)
    hits = index.search(csr_array([[2, 1]]), 2, first=csr_array([[1, 0]]))
    assert list(hits) == [[("image-1", 9.0), ("image-0", 6.0)]]
    assert list(index.search(csr_array([[2, 1]]), 2, first=csr_array([[1, 0]]), candidates=3)) == [
        [("image-2", 11.0), ("image-1", 9.0)]
    ]
    assert list(index.search_exact(csr_array([[2, 1]]), 1)) == [[("image-3", 50.0)]]


def test_the_strongest_terms_are_the_default(make_bags):
    index = build_index(make_bags([[3, 0], [2, 5], [0, 50]]), "cascade", first_terms=1)
    assert index.search([[2, 1]], 3).ids == [["image-1", "image-0"]]
    assert index.search([[2, 1]], 3, first_terms=2).ids == [["image-2", "image-1", "image-0"]]
    assert index.search([[0, 0]], 3).ids == [[]]


def test_scores_are_those_of_the_exact_engine(make_bags):
    bags = make_bags(count=800, width=60)
    exact, index = build_index(bags), build_index(bags, "cascade", first_terms=2, candidates=50)
    recall = Recall(**index.about["recall"])
    assert recall.options == {"first_terms": 2, "candidates": 50}
    assert 0.1 < recall.value < 1
    for mine, best in zip(index.search(bags.rows, 10), exact.search(bags.rows, 800), strict=True):
        truth = dict(best)
        assert all(truth[name] == score for name, score in mine)
    more = build_index(bags, "cascade", first_terms=4, candidates=200)
    assert more.about["recall"]["value"] > recall.value


def test_first_stage_queries_refused(make_bags):
    index = build_index(make_bags(np.eye(3)), "cascade")
    for error, said, first in (
        (MismatchError, "2 first-stage queries for 3 queries", np.eye(3)[:2]),
        (MismatchError, "first-stage query vectors have width 2", np.ones((3, 2))),
        (DataError, "first-stage query.*negative", -np.eye(3)),
    ):
        refused(error, said, index.search, np.eye(3), 1, first=first)


def test_with_all_items_as_candidates_it_is_exact_search(make_bags):
    """Terms so weak that the first stage's whole-number sums would be 0 are found too."""
    rng = np.random.default_rng(4)
    bags = make_bags(count=400)
    queries = 10.0 ** rng.uniform(-20, 5, (20, 40)) * (rng.random((20, 40)) < 0.4)
    index = build_index(bags, "cascade", first_terms=40, candidates=400)
    assert list(index.search(queries, 400)) == list(index.search_exact(queries, 400))


def test_weak_matches_of_a_long_query_are_found(make_bags):
    # 200 terms: the sum of the one document that shares only a feeble one is 0 at first.
    dense = np.zeros((50, 300), dtype=np.float32)
    dense[0, :200] = 1
    dense[1, 250] = 1e-6
    dense[2, 250] = 1
    query = np.full((1, 300), 1.0, dtype=np.float32)
    query[0, 250] = 1e-3
    hits = build_index(make_bags(dense), hub_share=0.0).search(query, 10)
    assert hits.ids == [["image-0", "image-2", "image-1"]]


def test_many_feeble_matches_are_more_than_one_that_is_not_so_feeble(make_bags):
    """Sums of whole numbers see the second document alone; the strongest term is of a deleted one."""
    dense, query = np.zeros((3, 300), dtype=np.float32), np.zeros((1, 300), dtype=np.float32)
    dense[0, 1:201] = dense[1, 250] = dense[2, 0] = query[0, 0] = 1
    query[0, 1:201], query[0, 250] = 4e-7, 2e-5
    load_kernels()
    index = build_index(make_bags(dense), hub_share=0.0)
    index.delete(["image-2"])
    assert index.search(query, 1).ids == [["image-0"]]


def test_few_rows_are_scored_without_the_kernels_to_the_same_bit(make_bags, monkeypatch):
    rows, queries = bags_of(700, 60, 3), bags_of(40, 60, 4)
    index = build_index(make_bags(rows))
    index.delete([f"image-{slot}" for slot in range(0, 700, 9)])
    index.add(["late", "later"], rows[:2])
    compiled = [list(index.search(queries, k)) for k in (1, 10, 900)]
    monkeypatch.setattr("diptych.index.segments.kernels_loaded", lambda: False)
    monkeypatch.setattr("diptych.index.segments.load_kernels", None)
    assert [list(index.search(queries, k)) for k in (1, 10, 900)] == compiled
    monkeypatch.setattr("diptych.index.segments.can_compile", lambda: False)  # Numba is not installed
    monkeypatch.setattr("diptych.index.segments._FEW", 100)  # in blocks of a few rows
    assert [list(index.search(queries, k)) for k in (1, 10, 900)] == compiled


def test_products_are_added_in_four_sums_whoever_adds_them(make_bags, monkeypatch):
    """Worked out by hand: (1 + 2⁻²⁴) + (2⁻⁵³ + 2⁻⁵³) is above the middle of two float32 numbers; in turn it is not."""
    rows = np.zeros((2, 10))
    rows[0, 8:] = 1
    rows[1, :8] = 2.0 ** np.array([0, -53, -80, -80, -24, -53, -80, -80])
    index = build_index(make_bags(rows))
    scores = []
    for loaded in (True, False):
        monkeypatch.setattr("diptych.index.segments.kernels_loaded", lambda loaded=loaded: loaded)
        scores.append(dict(next(iter(index.search(np.ones((1, 10)), 2))))["image-1"])
    assert scores == [np.float32(1 + 2.0**-23)] * 2
