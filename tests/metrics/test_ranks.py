"""Ranks of rows and of re-ranked candidates, against counting one comparison at a time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import ranks_from_rows, ranks_from_scores
from refusals import refused
from slow_ranking import exact_scores

from diptych.core.context import report_to
from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics import DIRECTIONS, UNSCORED, Candidates, GroundTruth, Ranks, Reranked
from diptych.metrics import ranks as module
from diptych.metrics.tiles import TileCounter


def counted_slowly(scores: np.ndarray, truth: GroundTruth, every: bool) -> dict[str, dict[str, list[int]]]:
    """The same counts, one comparison at a time."""
    found = {}
    for name in DIRECTIONS:
        table = scores if name == "i2t" else scores.T
        counts: dict[str, list[int]] = {"above": [], "tied": [], "later": [], "group": []}
        for query, row in enumerate(table.tolist()):
            mine = truth.positives(name).of(query).tolist()
            negatives = [other for other in range(len(row)) if other not in mine]
            best_first = sorted(mine, key=lambda p: (-row[p], -p))
            for p in best_first if every else best_first[:1]:
                counts["above"].append(sum(row[other] > row[p] for other in negatives))
                counts["tied"].append(sum(row[other] == row[p] for other in negatives))
                counts["later"].append(sum(row[other] == row[p] and other > p for other in negatives))
                counts["group"].append(sum(row[other] == row[p] for other in mine))
        found[name] = counts
    return found


def listed(ranks: dict[str, Ranks]) -> dict[str, dict[str, list[int]]]:
    return {
        name: {key: getattr(given, key).tolist() for key in ("above", "tied", "later", "group")}
        for name, given in ranks.items()
    }


def random_truth(random: np.random.Generator, n: int, m: int) -> GroundTruth:
    pairs = random.random((n, m)) < min(1.0, 2.0 / n)
    return GroundTruth.from_pairs(*np.nonzero(pairs), n, m)


@settings(max_examples=60)
@given(data=st.data())
def test_rows_agree_with_slow_counting_whatever_the_block(data: st.DataObject) -> None:
    n, m, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 25)), data.draw(st.integers(1, 9))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = data.draw(st.sampled_from([1.0, 1e-30, 1e25]))
    noise = data.draw(st.sampled_from([0.0, 1e-8, 1e-7, 1e-5, 1.0]))
    images = random.normal(size=(1, d)) + noise * random.normal(size=(n, d))
    texts = random.normal(size=(1, d)) + noise * random.normal(size=(m, d))
    texts = texts[random.integers(0, m, m)]  # some texts occur twice
    images, texts = (scale * images).astype(np.float32), (scale * texts).astype(np.float32)
    truth, every = random_truth(random, n, m), data.draw(st.booleans())
    block, threads = data.draw(st.integers(1, 400)), data.draw(st.integers(1, 3))
    found = ranks_from_rows(images, texts, truth, every=every, block=block, threads=threads)
    assert listed(found) == counted_slowly(exact_scores(images, texts), truth, every)


@pytest.fixture(scope="module")
def near_ties() -> tuple[np.ndarray, np.ndarray, GroundTruth]:
    """300 images by 1,500 texts with duplicates and with scores that only float64 tells apart."""
    random = np.random.default_rng(3)
    images = random.normal(size=(300, 48)).astype(np.float32)
    images[::7] = images[1::7][: len(images[::7])]
    texts = np.repeat(images, 5, axis=0)
    texts += (random.choice([0, 1e-7, 0.5], size=(1500, 1)) * random.normal(size=(1500, 48))).astype(
        np.float32
    )
    texts[100:200] = texts[300:400]
    return images, texts, GroundTruth.from_caption_image(np.repeat(np.arange(300), 5), 300)


def test_nothing_depends_on_block_or_threads(near_ties: tuple[np.ndarray, np.ndarray, GroundTruth]) -> None:
    images, texts, truth = near_ties
    scores = images.astype(np.float64)[:, None] * texts.astype(np.float64)[None]
    expected = listed(ranks_from_scores(scores.sum(axis=2), truth, every=True))
    assert sum(expected["i2t"]["tied"]) > 500
    for block, threads in ((10**7, 1), (100_000, 2), (9_999, 3), (1_000, 1)):
        found = ranks_from_rows(images, texts, truth, every=True, block=block, threads=threads)
        assert listed(found) == expected, (block, threads)


def test_the_careful_way_is_taken_where_it_must_be(
    near_ties: tuple[np.ndarray, np.ndarray, GroundTruth], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, careful = [], TileCounter._count_careful
    monkeypatch.setattr(
        TileCounter, "_count_careful", lambda self, *where: (taken.append(where), careful(self, *where))[1]
    )
    images, texts, truth = near_ties
    ranks_from_rows(images, texts, truth, threads=1)
    assert not taken
    ranks_from_rows(np.ones_like(images), np.ones_like(texts), truth, threads=1)
    assert taken


def degenerate(kind: str, random: np.random.Generator, size: int) -> np.ndarray:
    """Rows of images (60) or texts, between which exact scores decide, or nothing does."""
    rows = np.tile(random.normal(size=101).astype(np.float32), (size, 1))
    if kind == "nearly equal":
        rows = (1 + 1e-6 * random.normal(size=rows.shape)).astype(np.float32)
    if kind == "binary codes":
        rows = random.choice([-1.0, 1.0], size=rows.shape).astype(np.float32)
    if kind.startswith("the same sum in another order"):  # products of 48 bits, so that sums are rounded
        rows = np.full_like(rows, 1 / 3) if size == 60 else random.permuted(rows, axis=1)
    if kind == "equal but for a column of zeros":
        rows[:, -1] = 0 if size == 60 else random.normal(size=size)
    if kind == "the same sum in another order, of different rows":
        rows[:, -1] = random.normal(size=size) if size == 60 else 0
    return rows


def test_degenerate_models_are_counted_exactly() -> None:
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(60), 5), 60)
    for kind in (
        *("equal", "nearly equal", "equal but for a column of zeros", "the same sum in another order"),
        *("the same sum in another order, of different rows", "binary codes"),
    ):
        random = np.random.default_rng(5)
        images, texts = degenerate(kind, random, 60), degenerate(kind, random, 300)
        found = ranks_from_rows(images, texts, truth, every=True, block=3_000)
        assert listed(found) == counted_slowly(exact_scores(images, texts), truth, every=True), kind


def test_what_cannot_be_ranked() -> None:
    truth, rows = GroundTruth.from_caption_image([0, 1], 2), np.ones((2, 3), np.float32)
    broken = rows.copy()
    broken[1, 2] = np.nan
    ids = {"text_ids": ["a#0", "b#1"]}
    options: dict[str, Any]
    for images, texts, options, error, message in (
        (rows, np.ones((3, 3), np.float32), {}, DataError, "3 text rows for a ground truth of 2 texts"),
        (rows, np.ones((2, 4), np.float32), {}, DataError, "image rows have width 3, text rows 4"),
        (rows, rows, {"block": 0}, UsageError, "is 0, it must be at least 1"),
        (rows, rows, {"threads": 0}, UsageError, "is 0, it must be at least 1"),
        (rows, broken, ids, NumericalError, r"text 'b#1' \(row 1\) is not finite"),
        (broken, rows, {}, NumericalError, r"image \(row 1\) is not finite"),
    ):
        refused(error, message, ranks_from_rows, images, texts, truth, **options)
    for scores, error, message in (
        (np.ones((2, 3)), DataError, "3 text rows for a ground truth of 2 texts"),
        (np.array([["a", "b"], ["c", "d"]]), DataError, "matrix of numbers"),
        (np.array([[0, 1], [-np.inf, 1]]), NumericalError, "image row 1 and text row 0 is -inf"),
    ):
        refused(error, message, ranks_from_scores, scores, truth)
    for n, m in ((0, 0), (0, 3), (2, 0)):
        empty, message = (
            GroundTruth.from_pairs([], [], n, m),
            f"{n} images and {m} texts: there is nothing to",
        )
        refused(DataError, message, ranks_from_rows, np.ones((n, 2), "f"), np.ones((m, 2), "f"), empty)


def test_progress_adds_up_to_all_scores() -> None:
    seen: list[Any] = []
    steps: list[int] = []
    bar = SimpleNamespace(advance=lambda done=1, note="": steps.append(done))
    bars: Any = SimpleNamespace(start=lambda *about: seen.append(about) or bar, finish=seen.append)
    rows, truth = np.eye(10, dtype=np.float32), GroundTruth.from_caption_image(np.arange(10), 10)
    with report_to(bars):
        ranks_from_rows(rows, rows, truth, block=7, threads=2)
    assert (seen[0][:3], seen[1], sum(steps), len(steps) > 2) == (("ranks", 100, "scores"), bar, 100, True)


def test_threads_count_as_the_environment_says_and_lose_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: TileCounter, images: slice, texts: slice) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(TileCounter, "count", fail)
    rows = np.eye(10, dtype=np.float32)
    with pytest.raises(MemoryError, match="no more"):
        ranks_from_rows(rows, rows, GroundTruth.from_caption_image(np.arange(10), 10), block=7, threads=2)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert module.available_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert module.available_threads() >= 1


def side(items: object, contrastive: object = None, matching: object = None) -> Candidates:
    rows = np.asarray(items)
    falling = -np.tile(np.arange(rows.shape[1], dtype=np.float32), (len(rows), 1))
    first = falling if contrastive is None else np.asarray(contrastive, np.float32)
    second = rows.astype(np.float32) if matching is None else np.asarray(matching, np.float32)
    return Candidates(rows, first, second)


@pytest.fixture
def reranked() -> Reranked:
    """Two images, three texts, two candidates."""
    return Reranked(side([[2, 0], [1, 2]]), side([[0, 1], [1, 0], [1, 0]]), True, {"encoder": "abc", "k": 2})


def test_saved_over_what_it_is_mapped_from(reranked: Reranked, tmp_path: Path) -> None:
    opened = Reranked.open(reranked.save(tmp_path / "reranked"))
    assert isinstance(opened.t2i.items, np.memmap)
    assert opened.first(1).i2t.items.tolist() == [[2], [1]]
    again = Reranked.open(opened.save(tmp_path / "reranked"))
    assert again.t2i.items.tolist() == reranked.t2i.items.tolist()
    assert {path.suffix for path in (tmp_path / "reranked").iterdir()} == {".npy", ".json"}


def test_the_published_matrix(reranked: Reranked) -> None:
    assert reranked.matrix("i2t").tolist() == [[-1, UNSCORED, 2], [UNSCORED, 1, 1]]  # matching + contrastive


def test_what_are_no_candidates(tmp_path: Path) -> None:
    for items, contrastive, matching, error, message in (
        ([[0, 3]], None, None, DataError, "i2t query 0: a candidate is not in a gallery of 3"),
        ([[0, -1]], None, None, DataError, "a candidate is not in a gallery of 3"),
        ([[0, 1], [2, 2]], None, None, DataError, "i2t query 1: a row is a candidate twice"),
        ([[0, 1]], [[0.1, 0.2]], None, DataError, "a higher contrastive score than"),
        ([[0, 1]], [[np.inf, 0]], None, NumericalError, "a contrastive score is not finite"),
        ([[0, 1]], None, [[0, np.nan]], NumericalError, "a matching score is not finite"),
        (np.zeros((2, 0), int), None, None, DataError, "2 queries with 0 candidates each"),
        (np.zeros((0, 2), int), None, None, DataError, "0 queries with 2 candidates each"),
    ):
        given = Reranked(side(items, contrastive, matching), side(np.zeros((3, 1), int)))
        assert given.n_images == len(np.asarray(items))
        refused(error, message, given.save, tmp_path / "reranked")
        assert not (tmp_path / "reranked").exists()
    scores = np.zeros((1, 2))
    message = r"candidates of shape \(1, 2\), contrastive scores \(1, 3\)"
    refused(DataError, message, Candidates, np.zeros((1, 2), int), np.zeros((1, 3)), scores)
    refused(DataError, "candidates are float64 numbers", Candidates, scores, scores, scores)
