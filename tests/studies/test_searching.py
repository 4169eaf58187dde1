"""Table 3.6 in small: what is searched, what is found, what is said of it. No speed is asserted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import RecipeError, UsageError
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index import Hits
from diptych.studies import STUDIES, Choices, Results, compare, searched
from diptych.studies.page import render_study
from diptych.studies.runner import run_study
from diptych.studies.searched import SearchOptions, best_ids, recall_of, time_search, with_copies

TABLE = STUDIES.get("d2s.table-3.6")
ROWS = ["hnsw-dense", "hnsw-dense-equal", "pisa-1e-3", "inverted-1e-3", "cascade-1e-3", "cascade-1e-3-1000"]


def test_copies_are_pictures_with_noise_of_their_length() -> None:
    rows = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32) * 3
    made = np.concatenate(list(with_copies(rows, 12, 0.5)))
    assert made.shape == (12, 400)
    assert np.array_equal(made[:5], rows)
    copies = made[5:10]
    assert np.allclose(np.linalg.norm(copies, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
    cosines = np.sum(copies * rows, axis=1) / np.sum(rows * rows, axis=1)
    assert np.allclose(cosines, 1 / np.sqrt(1 + 0.5**2), atol=0.05)
    assert not np.allclose(made[10], made[5])  # a second copy has noise of its own
    assert np.array_equal(np.concatenate(list(with_copies(rows, 12, 0.5))), made)
    assert np.allclose(np.concatenate(list(with_copies(rows, 12, 0.0)))[5:10], rows, rtol=1e-6)


def listed(*lists: list[str]) -> Hits:
    return Hits(list(lists), np.zeros((len(lists), max(map(len, lists))), dtype=np.float32), 2)


def test_recall_is_of_the_best_there_are() -> None:
    best = np.array([["a", "b", "c"], ["d", None, None], [None, None, None]], dtype=object)
    found = [["a", "x"], ["d", "y"], ["z"]]
    assert recall_of(found, best, 2) == pytest.approx((0.5 + 1.0) / 2)  # the third has nothing to find
    assert recall_of(found[:1], best, 1) == 1.0  # as many as there was time for
    assert np.isnan(recall_of(found[:1], best[2:], 2))


def test_the_best_are_those_of_every_pair() -> None:
    from scipy.sparse import csr_array

    draw = np.random.default_rng(0)
    dense = draw.normal(size=(30, 8)).astype(np.float32)
    ids = [f"i{place}" for place in range(30)]
    queries = draw.normal(size=(4, 8)).astype(np.float32)
    items = Embeddings(ids, dense, "e", "d", "image", {})
    wanted = np.argsort(-(queries @ dense.T), axis=1)[:, :3]
    assert best_ids(items, queries, 3).tolist() == [[ids[place] for place in row] for row in wanted]
    bags = np.where(draw.random((30, 8)) < 0.3, np.abs(dense), 0).astype(np.float32)
    asked = np.zeros((2, 8), dtype=np.float32)
    asked[0, 2] = 1.0
    sparse = SparseEmbeddings(ids, csr_array(bags), [str(term) for term in range(8)], "e", "d", "image", {})
    first, nothing = best_ids(sparse, csr_array(asked), 30).tolist()
    found = [name for name in first if name is not None]
    assert found == [ids[place] for place in np.argsort(-bags[:, 2], kind="stable") if bags[place, 2] > 0]
    assert nothing == [None] * 30


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_LEAST", 0.0)
    monkeypatch.setattr(searched, "_SECONDS", 5.0)
    monkeypatch.setattr(searched, "_ONE_BY_ONE", 2)


@pytest.mark.usefixtures("hurried")
def test_every_query_is_asked_and_then_one_at_a_time() -> None:
    asked: list[tuple[int, int]] = []

    def search(part: slice, k: int) -> Hits:
        asked.append((part.start, part.stop))
        return listed(*([f"i{place}"] for place in range(part.start, part.stop)))

    timed = time_search(search, 130, 1)
    assert asked[:2] == [(0, 3), (0, 1)]  # not counted
    assert asked[2:5] == [(0, 64), (64, 128), (128, 130)]
    assert asked[5] == (0, 1)
    assert timed.ids == [[f"i{place}"] for place in range(130)]
    assert timed.rate > 0
    assert timed.alone > 0


@pytest.fixture
def results(scenes_folder: Path, tmp_path: Path, hurried: None) -> Results:
    values = {
        "model.width": 16,
        "model.image.preprocessing": {"size": 32, "resize": 32},
        "model.text.word_width": 8,
        "model.text.min_count": 1,
        "batches.size": 16,
        "stages.0.epochs": 1,
        "stages.0.warmup": 0,
        "sparsify.vocabulary.size": 120,
        "sparsify.head.width": 8,
        "sparsify.training.epochs": 2,
        "sparsify.training.batch_size": 64,
        "search.items": 150,
        "search.queries": 20,
    }
    choices = Choices(setting="quick", data={"path": str(scenes_folder)}, values=values)
    return run_study(TABLE, tmp_path / TABLE.name, choices, rows=ROWS, accelerator="cpu")


def test_engines_are_searched_with_their_recall(results: Results, tmp_path: Path) -> None:
    from diptych.sparse.measures import flops

    measured = {entry.row: entry.measurements[0] for entry in results.entries}
    assert list(measured) == [row.name for row in TABLE.rows if row.name in ROWS]
    for name, one in measured.items():
        assert {
            f"{what} @{k}" for what in ("throughput", "latency", "recall") for k in (10, 100, 1000)
        } <= set(one.values)
        assert (one.on.split, one.on.images, one.on.captions) == ("all", 150, 20)
        assert one.values["latency @10|published"] == pytest.approx(1000 / one.values["throughput @10"])
        assert "150 items: 80 pictures of all splits, then copies with noise of 0.5" in one.protocol
        assert ("FLOPs" in one.values) is (name in ("pisa-1e-3", "inverted-1e-3"))
    assert [measured["inverted-1e-3"].values[f"recall @{k}"] for k in (10, 100, 1000)] == [100, 100, 100]
    assert measured["hnsw-dense-equal"].values["recall @10"] >= 97
    assert "ef_search 16 @10" in measured["hnsw-dense-equal"].protocol
    assert (
        0 < measured["pisa-1e-3"].values["recall @10"] <= 100
    )  # whole-number impacts of a barely trained head
    # As many candidates as are asked for find fewer of the best than a thousand.
    few, many = (measured[row].values["recall @10"] for row in ("cascade-1e-3", "cascade-1e-3-1000"))
    assert few <= many
    folder = tmp_path / "d2s.table-3.1" / "rows"
    items = SparseEmbeddings.open(folder / "d2s-1e-3-c+w" / "seed-0" / "items" / "150-0.5" / "rows")
    assert len(items) == len(set(items.ids)) == 150
    from diptych.sparse.sparsified import SparsifiedCollection

    sparse = SparsifiedCollection.open(folder / "d2s-1e-3-c+w" / "seed-0" / "sparse" / "scenes-test")
    places = np.linspace(0, 79, 20).round().astype(int)
    expected = flops(sparse.texts.rows[places], items.rows)
    assert measured["inverted-1e-3"].values["FLOPs"] == pytest.approx(expected)

    comparison = compare(TABLE, results)
    page = render_study(comparison)
    assert "&lt;1" in page  # printed as a bound
    assert "throughput @10, mean and standard deviation" in page
    statuses = {claim.name: judgement.status for claim, judgement, _ in comparison.claims}
    assert statuses["HNSW of terms"] == "not run"
    assert statuses["ours: PISA"] in ("holds", "fails")


def test_an_option_that_no_search_has_is_an_error(scenes_folder: Path, tmp_path: Path) -> None:
    from diptych.studies.making import Wanted
    from diptych.studies.searched import options_of_search

    def options(**values: object) -> SearchOptions:
        chosen = Choices(setting="quick", data={"path": str(scenes_folder)}, values=values)
        return options_of_search(Wanted(TABLE, TABLE.row("hnsw-dense"), 0, "quick", chosen, tmp_path))

    assert options(**{"search.options.threads": 1}).options == {
        "m": 32, "ef_construction": 40, "ef_search": 16, "threads": 1,
    }  # fmt: skip
    # All rows would be the same, whatever they are called.
    for key in ("search.engine", "search.options.ef_search"):
        with pytest.raises(UsageError, match="is what sets hnsw-dense apart"):
            options(**{key: 64})
    for key in ("search.nonsense", "search.nonsense.more"):
        with pytest.raises(RecipeError, match="nonsense"):
            options(**{key: 1})
    with pytest.raises(RecipeError, match="items"):
        options(**{"search.items": 0})
