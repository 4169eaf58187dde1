"""Evaluations of what is on disk: extended positives, order embeddings, runs and folders of runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import DataError, UsageError
from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of, positives_of
from diptych.metrics import read_qrels
from diptych.metrics.products import cosine_rows
from diptych.training.evaluations import evaluation_folder, evaluations_of

HOME = np.repeat(np.arange(6), 2)


def encoded(similarity: str = "cosine") -> EncodedCollection:
    random = np.random.default_rng(0)
    images, texts = (np.abs(random.normal(size=(n, 4))).astype(np.float32) for n in (6, 12))
    about = {"dataset": "tiny", "split": "test", "data": "d"}
    return EncodedCollection(
        Embeddings([f"{n}.jpg" for n in range(6)], images, "e", "d", "image", about, similarity),
        Embeddings([str(n) for n in range(12)], texts, "e", "d", "text", about, similarity),
        HOME,
        about,
    )


@pytest.fixture
def source(tmp_path: Path) -> str:
    write_json(tmp_path / "more.json", {"i2t": {"0.jpg": ["0", "1", "11"], "3": ["6", "7"]}})
    return f"pairs:{tmp_path / 'more.json'}"


def test_extended_positives_from_ids_to_numbers(source: str, tmp_path: Path) -> None:
    given = encoded()
    more = positives_of(given, source)
    truth = ground_truth_of(given, more)
    assert truth.i2t.of(0).tolist() == [0, 1, 11]
    assert truth.queries("i2t").tolist() == [0, 3]
    assert truth.text_image.tolist() == HOME.tolist()
    result = evaluate_encoded(given, tmp_path / "e", ("R@1", "R-precision"), positives=more, samples=0)
    plain = evaluate_encoded(given, None, ("R@1", "R-precision"), samples=0)
    assert result.protocol.about["positives"] == more.line()
    assert "positives pairs of more.json (i2t 4 + 1 − 0, " in result.protocol_line()
    assert "2 i2t queries asked" in result.protocol_line()
    assert "positives" not in plain.protocol.about
    scores = cosine_rows(given.images.rows) @ cosine_rows(given.texts.rows).T
    best = np.argsort(-scores, axis=1)
    expected = [len({0, 1, 11} & set(best[0, :3].tolist())) / 3, len({6, 7} & set(best[3, :2].tolist())) / 2]
    assert result.value("R-precision", "i2t") == pytest.approx(np.mean(expected))
    assert sorted(read_qrels(tmp_path / "e" / "i2t.qrels")) == ["0.jpg", "3.jpg"]


def test_order_embeddings_are_scored_as_such(tmp_path: Path) -> None:
    given = encoded("order")
    result = evaluate_encoded(given, tmp_path / "e", ("R@1", "MRR"), samples=0)
    excess = np.maximum(0, given.texts.rows[None].astype(float) - given.images.rows[:, None].astype(float))
    expected = evaluate(-(excess**2).sum(axis=2), None, ground_truth_of(given), ("R@1", "MRR"))
    assert result.values() == pytest.approx(expected.values())
    assert "similarity order" in result.protocol_line()
    assert (tmp_path / "e" / "t2i.run").is_file()


def small(value: float) -> Result:
    return evaluate(value * np.eye(6)[:, HOME], None, ground_truth_of(encoded()), ("R@1",))


def test_an_evaluation_is_found_where_it_is(tmp_path: Path) -> None:
    direct = small(1.0).save(tmp_path / "direct")
    beside = small(1.0).save(tmp_path / "out" / "evaluation")
    inside = small(1.0).save(tmp_path / "run" / "evaluation" / "scenes-test")
    assert evaluation_folder(direct) == direct
    assert evaluation_folder(tmp_path / "out") == beside
    assert evaluation_folder(tmp_path / "run") == inside
    assert evaluation_folder(tmp_path / "run", "scenes-test") == inside
    assert evaluation_folder(tmp_path) is None
    with pytest.raises(UsageError, match="no evaluation called 'coco-test'.*it has: scenes-test"):
        evaluation_folder(tmp_path / "run", "coco-test")
    assert [one.value("R@1", "i2t") for one in evaluations_of(tmp_path / "run")] == [1.0]


def test_a_run_means_its_test_split(run_folder: Path, tmp_path: Path) -> None:
    """The run folder is shared with other tests: look at a copy of its recipe only."""
    run = tmp_path / "run"
    run.mkdir()
    for name in ("run.json", "recipe.toml"):
        (run / name).write_bytes((run_folder / name).read_bytes())
    with pytest.raises(UsageError, match=f"was not evaluated.*diptych evaluate {run}"):
        evaluations_of(run)
    for name in ("scenes-val", "scenes-test"):
        small(1.0).save(run / "evaluation" / name)
    assert evaluation_folder(run) == run / "evaluation" / "scenes-test"
    seeds = tmp_path / "seeds"
    for seed in (0, 1):
        (seeds / f"seed-{seed}").mkdir(parents=True)
        for name in ("run.json", "recipe.toml"):
            (seeds / f"seed-{seed}" / name).write_bytes((run / name).read_bytes())
    small(1.0).save(seeds / "seed-0" / "evaluation" / "scenes-test")
    with pytest.raises(UsageError, match="seed-1 of 2 runs was not evaluated"):
        evaluations_of(seeds)
    small(0.0).save(seeds / "seed-1" / "evaluation" / "scenes-test")
    found = [one.value("R@1", "i2t") for one in evaluations_of(seeds)]
    assert found == pytest.approx([1.0, 1 / 6])


def test_nothing_to_be_found(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere is no folder"):
        evaluations_of(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no evaluation and no run"):
        evaluations_of(tmp_path / "empty")


def test_positives_of_another_collection_are_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "other.json", {"t2i": {"900": ["901.jpg"]}})
    with pytest.raises(DataError, match="is in the collection of 6 images and 12 captions"):
        positives_of(encoded(), f"pairs:{tmp_path / 'other.json'}")
