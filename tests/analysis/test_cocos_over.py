"""Counting over many batches equals counting each, and the artefact says all its numbers depend on."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.analysis import cocos_over, count
from diptych.core.errors import UsageError
from diptych.data.batches import Batch, BatchPlan
from diptych.objectives import OBJECTIVES, InfoNCE, Triplet, TripletHardest

CAPTION_IMAGE = np.repeat(np.arange(30), 3)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    images = random.normal(size=(30, 8))
    return unit(images), unit(images[CAPTION_IMAGE] + random.normal(size=(90, 8)))


@pytest.fixture
def batches() -> list[Batch]:
    return BatchPlan(CAPTION_IMAGE, 30, 16, "distinct", seed=1).epoch(0)


def one(rows: tuple[np.ndarray, np.ndarray], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.from_numpy(rows[0][batch.images] @ rows[1][batch.captions].T)
    return scores, torch.from_numpy(batch.caption_image[None, :] == np.arange(len(batch.images))[:, None])


@pytest.mark.parametrize("compat", ["none", "equations", "published"])
def test_mean_and_deviation_over_batches(
    rows: tuple[np.ndarray, np.ndarray], batches: list[Batch], compat: str
) -> None:
    objective = Triplet(0.2)
    report = cocos_over(*rows, iter(batches), objective, compat=compat)  # type: ignore[arg-type]
    for direction in ("i2t", "t2i"):
        each = [count(objective, *one(rows, batch), compat=compat)[direction] for batch in batches]  # type: ignore[arg-type]
        spread = report.counts[direction]["in_batch"]
        assert spread.batches == len(batches) == 6
        assert spread.mean == pytest.approx(np.mean([counts.in_batch for counts in each]))
        assert spread.sd == pytest.approx(np.std([counts.in_batch for counts in each]))
        zeros = report.counts[direction]["without_gradient"]
        assert zeros.mean == pytest.approx(np.mean([counts.without_gradient for counts in each]))
    assert ("negatives_weight" in report.counts["i2t"]) == (compat == "none")


def test_the_distribution_right_of_epsilon_is_what_was_counted(
    rows: tuple[np.ndarray, np.ndarray], batches: list[Batch]
) -> None:
    report = cocos_over(*rows, batches, InfoNCE(0.1), 0.1)  # .1 is an edge between bins
    for direction, given in report.counts.items():
        negatives = report.weights[direction]["negatives"]
        above = np.flatnonzero(negatives.edges >= 0.0999)[0] + 1
        assert negatives.queries == 90
        # Batches differ by one query at most, so that means of means are not exactly the mean.
        assert sum(negatives.counts[above:]) == pytest.approx(given["in_batch"].mean * len(batches))
        positives = report.weights[direction]["positives"]
        assert positives.candidates == 90
        assert sum(positives.sums) / 90 == pytest.approx(given["positives_weight"].mean, rel=0.02)


def test_any_objective_over_batches(rows: tuple[np.ndarray, np.ndarray]) -> None:
    grouped = BatchPlan(CAPTION_IMAGE, 30, 10, "grouped", 3).epoch(0)
    for kind in OBJECTIVES:
        report = cocos_over(*rows, grouped, kind())
        assert report.protocol.objective == kind.name
        assert report.protocol.captions == (30, 30)
        assert report.counts["i2t"]["per_query"].batches == 3
        assert ("within" in report.weights["t2i"]) == kind().needs_within


def test_batches_without_gradient_are_left_out_and_said(batches: list[Batch]) -> None:
    rows = np.eye(30, dtype=np.float32), np.eye(30, dtype=np.float32)[CAPTION_IMAGE]
    report = cocos_over(*rows, batches, TripletHardest(0.2))
    assert "per_active_query" not in report.counts["i2t"]
    assert report.counts["i2t"]["without_gradient"].mean == 15
    assert "i2t: in 6 of 6 batches no query has a gradient" in report.notes()[0]


def test_the_protocol_says_everything(rows: tuple[np.ndarray, np.ndarray], batches: list[Batch]) -> None:
    about = {"dataset": "things", "split": "train", "plan": "distinct", "captions per image": None}
    learned = InfoNCE(0.125, learn_temperature=True)
    line = cocos_over(*rows, batches, learned, 0.02, about=about).protocol.line()
    for words in (
        "dataset things; split train; plan distinct; objective infonce (temperature 0.125",
        "similarity cosine",
        "6 batches of 15 images and 15 captions",
        "τ·|∂L/∂s| > ε = 0.02",
    ):
        assert words in line
    assert "captions per image" not in line
    assert "when |∂L/∂s| > ε" in cocos_over(*rows, batches, learned, unit="score").protocol.line()
    assert "compat equations" in cocos_over(*rows, batches, learned, compat="equations").protocol.line()
    assert "compat published" in cocos_over(*rows, batches, learned, compat="published").protocol.line()


def test_another_similarity(rows: tuple[np.ndarray, np.ndarray], batches: list[Batch]) -> None:
    def distance(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return -torch.cdist(left, right).square()

    objective = InfoNCE(0.1)
    report = cocos_over(*rows, batches, objective, similarity=distance)
    # −‖a − b‖² of unit rows is twice the cosine less 2: the same as half the temperature.
    halved = cocos_over(*rows, batches, InfoNCE(0.05))
    assert report.protocol.similarity == "distance"
    assert report.counts["i2t"]["negatives_weight"].mean == pytest.approx(
        halved.counts["i2t"]["negatives_weight"].mean, rel=1e-3
    )


def test_nothing_to_count(rows: tuple[np.ndarray, np.ndarray], batches: list[Batch]) -> None:
    with pytest.raises(UsageError, match="no batch"):
        cocos_over(*rows, [], InfoNCE())
    with pytest.raises(UsageError, match="epsilon -1"):
        cocos_over(*rows, batches, InfoNCE(), -1)
    with pytest.raises(UsageError, match="compat 'old'"):
        cocos_over(*rows, batches, InfoNCE(), compat="old")  # type: ignore[arg-type]


def test_memory_is_that_of_a_batch(tmp_path: Path) -> None:
    stored = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype="float32", shape=(40_000, 64))
    stored[:] = unit(np.random.default_rng(0).normal(size=(40_000, 64)))

    def drawn() -> Iterator[Batch]:
        for start in range(0, 40_000, 40):
            places = np.arange(start, start + 40)
            yield Batch(places, places, np.arange(40))

    cocos_over(stored[:40], stored[:40], [next(drawn())], Triplet())
    tracemalloc.start()
    report = cocos_over(stored, stored, drawn(), Triplet())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.protocol.batches == 1000
    assert peak < stored.nbytes / 10
