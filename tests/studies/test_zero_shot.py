"""Measuring an encoder as it is: which captions, how many candidates, what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_matching import FakeMatching
from ranking import evaluate_reranked

from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, UnknownNameError, UsageError
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import rerank
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of
from diptych.studies.given import GivenEncoder
from diptych.studies.study import Measurement, Subject
from diptych.studies.zero_shot import ZeroShot, chosen_of


class Row(GivenEncoder):
    """A row's encoder that need not be loaded."""

    encoder = FakeMatching()


@pytest.fixture(scope="module")
def collection(scenes_folder: Path) -> Collection:
    return replace(read_collection(str(scenes_folder)), name="flickr30k")


def measured(collection: Collection, folder: Path, **values: object) -> Measurement:
    subject = Subject(Row(folder, "fake"), collection, None, measuring=values)
    (found,) = ZeroShot()(subject)
    return found


def test_rows_alone_are_what_evaluate_gives(collection: Collection, tmp_path: Path) -> None:
    found = measured(collection, tmp_path / "row", k_test=0)
    part = collection.split("test")
    encoded = encode_collection(FakeMatching(), part, tmp_path / "by hand", "test")
    by_hand = evaluate_encoded(encoded, None, ("R@1", "R@5", "R@10"), samples=0)
    for way in ("i2t", "t2i"):
        recalls = [100 * by_hand.value(name, way) for name in ("R@1", "R@5", "R@10")]
        assert [found.values[f"{way} {name}"] for name in ("R@1", "R@5", "R@10")] == pytest.approx(recalls)
        assert found.values[f"{way} rsum"] == pytest.approx(sum(recalls))
    assert found.values["rsum"] == pytest.approx(found.values["i2t rsum"] + found.values["t2i rsum"])
    on = found.on
    assert (on.dataset, on.split, on.images, on.captions) == ("flickr30k", "test", 16, 80)
    assert (on.chosen, on.reranked, on.centric) == ("all", 0, "scene")
    kept = Result.open(tmp_path / "row" / found.kept)
    assert 100 * kept.value("R@5", "t2i") == pytest.approx(found.values["t2i R@5"])
    assert len(kept.per_query["t2i"]["R@5"]) == 80


def test_a_matching_head_re_ranks_as_many_as_is_usual(collection: Collection, tmp_path: Path) -> None:
    found = measured(collection, tmp_path / "row")
    assert found.on.reranked == 128
    assert measured(replace(collection, name="coco"), tmp_path / "coco").on.reranked == 256
    two = measured(collection, tmp_path / "row", k_test=2)
    assert two.on.reranked == 2
    part = collection.split("test")
    encoded = encode_collection(FakeMatching(), part, tmp_path / "by hand", "test")
    by_hand = evaluate_reranked(rerank(FakeMatching(), part, encoded, 2), ground_truth_of(encoded))
    for way in ("i2t", "t2i"):
        for name in ("R@1", "R@5", "R@10"):
            assert two.values[f"{way} {name}"] == pytest.approx(100 * by_hand.value(name, way))
        # What is not re-ranked is not ranked: nothing is found beyond two.
        assert two.values[f"{way} R@5"] == two.values[f"{way} R@10"]
    published = measured(collection, tmp_path / "row", k_test=2, unranked="published")
    assert published.values["t2i R@10"] > two.values["t2i R@10"]  # found among the ties at -100
    assert published.kept != two.kept
    assert "k_test 2" in two.protocol
    assert (two.on.unranked, published.on.unranked) == ("miss", "published")
    assert measured(collection, tmp_path / "row", k_test=0, unranked="published").on.unranked == ""


@pytest.mark.parametrize(
    ("how", "seed", "name"), [("first", "", "first"), ("random", ", seed 3", "random-3")]
)
def test_one_caption_per_image(
    collection: Collection, tmp_path: Path, how: str, seed: str, name: str
) -> None:
    found = measured(collection, tmp_path, captions=how, seed=3, k_test=0)
    assert (found.on.captions, found.on.chosen) == (16, how)
    assert f"captions {how}{seed}" in found.protocol
    assert found.kept.endswith(name)
    again = measured(collection, tmp_path, captions=how, seed=3)
    assert again.on.captions == 16
    assert again.on.reranked == 128
    part = collection.split("test")
    fewer = part.first_captions() if how == "first" else part.random_captions(seed=3)
    encoded = encode_collection(FakeMatching(), fewer, tmp_path / "by hand", "test")
    by_hand = evaluate_encoded(encoded, None, ("R@1", "R@5", "R@10", "rsum"), samples=0)
    assert found.values["rsum"] == pytest.approx(by_hand.value("rsum"))
    for way in ("i2t", "t2i"):
        assert found.values[f"{way} R@5"] == pytest.approx(100 * by_hand.value("R@5", way))


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ({"captions": "five"}, UsageError, "all, first, random"),
        ({"k_test": -1}, UsageError, "whole number from 0"),
        ({"k_test": "all"}, UsageError, "whole number from 0"),
        ({"seed": 1.5}, UsageError, "measure.seed"),
        ({"seed": True}, UsageError, "measure.seed"),
        ({"unranked": "ties"}, UnknownNameError, "miss"),
    ],
)
def test_impossible_choices(values: dict[str, object], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        chosen_of(values)


def test_re_ranking_stops_and_goes_on(collection: Collection, tmp_path: Path) -> None:
    """Asked after every block of pictures; what was scored is not scored again."""
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return (tmp_path / "reranked").exists() and any((tmp_path / "reranked").rglob("*.npy"))

    subject = Subject(Row(tmp_path, "fake"), collection, None, measuring={"k_test": 3})
    with stop_when(stop), pytest.raises(Interrupted, match="8 of 16 images"):
        ZeroShot()(subject)
    (found,) = ZeroShot()(subject)
    assert found.values == measured(collection, tmp_path / "at once", k_test=3).values


def test_a_split_that_is_not_there_is_named(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="known: test, train, val"):
        measured(collection, tmp_path, split="dev")
