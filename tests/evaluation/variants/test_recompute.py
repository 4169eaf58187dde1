"""Cells of variants against ways of scoring written out query by query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from two_stage import TwoStage, published_recalls

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.data import Collection
from diptych.data.images import FolderSource
from diptych.evaluation import evaluate
from diptych.evaluation.printed import Target
from diptych.evaluation.variants import (
    AXES,
    Inputs,
    MatrixScores,
    NotPossible,
    Recompute,
    RowScores,
    Scored,
    Settings,
)
from diptych.evaluation.variants.axes import place_within_image
from diptych.metrics import GroundTruth, top_k
from diptych.metrics.candidates import Candidates, Reranked

CELLS = tuple(f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10))
NOTHING = Target.of(dict.fromkeys(CELLS, 10.0), 1)


@pytest.fixture(scope="module")
def model() -> TwoStage:
    return TwoStage(100, k=5)


@pytest.fixture(scope="module")
def truth(model: TwoStage) -> GroundTruth:
    return GroundTruth.from_caption_image(model.home, 100)


def chosen(source: Scored, **wanted: str) -> Settings:
    """Settings with choices made by axis and name, as the explorer makes them."""
    inputs = Inputs({"test": source}, NOTHING)
    found = Settings("test")
    for axis in AXES:
        found = axis.choices(inputs)[0].apply(found)
    for name, choice in wanted.items():
        options = {one.name: one for one in AXES.get(name).choices(inputs)}
        found = options[choice].apply(found)
    return found


def cells(source: Scored, wanted: Settings, names: tuple[str, ...] = CELLS) -> dict[str, float]:
    return Recompute({"test": source}, names, 16, threads=1).cells(wanted)


def stored(model: TwoStage, k: int, adds: bool = False) -> Reranked:
    """The candidates that ``diptych evaluate --rerank`` would store."""
    sides = {}
    for name in ("i2t", "t2i"):
        queries, gallery = (model.images, model.texts) if name == "i2t" else (model.texts, model.images)
        matching = model.matching if name == "i2t" else model.matching.T
        items, scores = top_k(queries, gallery, k)
        final = np.take_along_axis(matching, items, axis=1)
        sides[name] = Candidates(items, scores.astype(np.float32), final.astype(np.float32))
    return Reranked(sides["i2t"], sides["t2i"], adds)


def test_the_default_is_what_evaluate_says(model: TwoStage, truth: GroundTruth) -> None:
    found = cells(RowScores(model.images, model.texts, truth), Settings("test"), (*CELLS, "i2t medr", "rsum"))
    wanted = evaluate(model.contrastive, None, truth, ["R@1", "R@5", "R@10", "medr", "rsum"])
    for name in CELLS:
        assert found[name] == pytest.approx(100 * wanted.values()[name])
    assert found["i2t medr"] == wanted.value("medr", "i2t")
    assert found["rsum"] == pytest.approx(wanted.value("rsum"))
    assert found == pytest.approx(
        cells(MatrixScores(model.contrastive, truth), Settings("test"), (*CELLS, "i2t medr", "rsum"))
    )


def test_first_captions(model: TwoStage, truth: GroundTruth) -> None:
    source = RowScores(model.images, model.texts, truth, reranked=stored(model, 64))
    first = model.caption(0)
    plain = published_recalls(model.contrastive[:, first], None, np.arange(100), 0)
    assert cells(source, chosen(source, captions="first", k_test="none")) == pytest.approx(plain)
    wanted = published_recalls(model.contrastive[:, first], model.matching[:, first], np.arange(100), 2)
    both = chosen(source, captions="first", k_test="2", unranked="published")
    assert cells(source, both) == pytest.approx(wanted)


def test_first_five_of_more() -> None:
    truth = GroundTruth.from_caption_image(np.repeat([0, 1, 2], [6, 5, 7]), 3)
    scores = np.random.default_rng(0).standard_normal((3, 18))
    source = MatrixScores(scores, truth)
    settings = chosen(source, captions="first five")
    assert settings.keep is not None
    kept = settings.keep.of(truth, source.image_keys)
    assert kept.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    wanted = published_recalls(scores[:, kept], None, truth.text_image[kept], 0)
    assert cells(source, settings) == pytest.approx(wanted)


def test_captions_in_any_order() -> None:
    truth = GroundTruth.from_pairs(
        [2, 0, 2, 1, 0], [0, 1, 2, 3, 4], 3, 6, text_image=np.array([2, 0, 2, 1, 0, -1])
    )
    assert place_within_image(truth).tolist() == [0, 0, 1, 0, 1, -1]


def test_columns(model: TwoStage, truth: GroundTruth) -> None:
    source = RowScores(model.images, model.texts, truth)
    plain = cells(source, chosen(source))
    rotated = cells(source, chosen(source, columns="i2t rotated to R@5, R@10, R@1"))
    assert [rotated[f"i2t R@{k}"] for k in (1, 5, 10)] == [plain[f"i2t R@{k}"] for k in (5, 10, 1)]
    assert rotated["t2i R@5"] == plain["t2i R@5"]
    swapped = cells(source, chosen(source, columns="directions swapped"))
    assert all(swapped[f"i2t R@{k}"] == plain[f"t2i R@{k}"] for k in (1, 5, 10))


def test_stored_candidates_in_a_smaller_gallery(model: TwoStage, truth: GroundTruth) -> None:
    source = RowScores(model.images, model.texts, truth, reranked=stored(model, 8))
    with pytest.raises(NotPossible, match="stored candidate"):
        cells(source, chosen(source, captions="first", k_test="5"))
    with pytest.raises(NotPossible, match="stored candidate"):  # the default, too: not ten are left
        cells(source, chosen(source, captions="first"))


def test_sizes(model: TwoStage, truth: GroundTruth) -> None:
    source = RowScores(model.images, model.texts, truth)
    recompute = Recompute({"test": source}, CELLS, 16)
    assert recompute.sizes(Settings("test")) == {"i2t": (500, 5.0, 100), "t2i": (100, 1.0, 500)}
    first = recompute.sizes(chosen(source, captions="first"))
    assert first == {"i2t": (100, 1.0, 100), "t2i": (100, 1.0, 100)}


def test_what_cannot_be(model: TwoStage, truth: GroundTruth) -> None:
    images, texts, scores = model.images, model.texts, model.contrastive
    some = stored(model, 4)
    broken = model.matching.copy()
    broken[3, 7] = np.nan
    matched: dict[str, Any] = {"depth": 2, "matched": True}
    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (
            lambda: RowScores(images, texts, truth, reranked=stored(TwoStage(40), 4)),
            DataError,
            "candidates of 40 images and 200 texts for 100 images and 500 texts",
        ),
        (lambda: RowScores(images[:40], texts, truth), DataError, "40 image rows for a ground truth of 100"),
        (lambda: MatrixScores(scores.T, truth), DataError, "500 image rows for a ground truth of 100"),
        (lambda: MatrixScores(scores, truth, image_ids=["a", "b"]), DataError, "2 image ids for 100 images"),
        (
            lambda: MatrixScores(scores, truth, matching=model.matching, reranked=some),
            UsageError,
            "one of them",
        ),
        (lambda: MatrixScores(scores, truth, matching=broken), NumericalError, "row 3 and text row 7 is nan"),
        (
            lambda: cells(RowScores(images, texts, truth), Settings("test", **matched)),
            NotPossible,
            "no matching scores",
        ),
        (
            lambda: cells(RowScores(images, texts, truth, reranked=some), Settings("test", matched=True)),
            NotPossible,
            "only some candidates",
        ),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()


def test_two_measures_called_map(model: TwoStage, truth: GroundTruth) -> None:
    """Over the positives that are found, and over all five that could be."""
    source = RowScores(model.images, model.texts, truth)
    target = Target.of({"i2t mAP@5": 40.0}, 0)
    axis = AXES.get("mAP")
    plain, over_hits = (one.apply(Settings("test")) for one in axis.choices(Inputs({"test": source}, target)))
    order = np.argsort(-model.contrastive, axis=1)[:, :5]
    hits = model.home[order] == np.arange(100)[:, None]
    precision = np.cumsum(hits, axis=1) / np.arange(1, 6)
    sums = np.sum(precision * hits, axis=1)
    names = ("i2t mAP@5", "i2t R@5")
    found = [cells(source, one, names) for one in (plain, over_hits)]
    assert found[0]["i2t mAP@5"] == pytest.approx(100 * np.mean(sums / 5))
    assert found[1]["i2t mAP@5"] == pytest.approx(100 * np.mean(sums / np.maximum(hits.sum(axis=1), 1)))
    assert found[0]["i2t R@5"] == found[1]["i2t R@5"]
    assert len(axis.choices(Inputs({"test": source}, NOTHING))) == 1


def test_random_captions_are_those_that_embedding_draws() -> None:
    """``diptych embed --captions random:1`` and ``captions = random, seed 1`` mean the same captions."""
    counts = np.random.default_rng(0).integers(1, 7, 60)
    home = np.repeat(np.arange(60), counts)
    ids = [f"{row:03d}.jpg" for row in np.random.default_rng(1).permutation(60)]
    collection = Collection(
        name="made-up",
        image_ids=ids,
        captions=[f"caption {row}" for row in range(len(home))],
        caption_ids=[str(row) for row in range(len(home))],
        caption_image=home,
        splits=["test"] * 60,
        source=FolderSource("nowhere", ids),
        source_rows=np.arange(60),
    )
    scores = np.zeros((60, len(home)))
    source = MatrixScores(scores, GroundTruth.from_caption_image(home, 60), image_ids=ids)
    for seed in (0, 1, 2):
        settings = chosen(source, captions=f"random, seed {seed}")
        assert settings.keep is not None
        kept = settings.keep.of(source.truth, source.image_keys)
        assert list(map(str, kept)) == list(collection.random_captions(seed=seed).caption_ids)
