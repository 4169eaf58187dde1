"""Evaluations of what is on disk: extended positives, order embeddings, runs and folders of runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, UsageError
from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of, positives_of
from diptych.metrics import read_qrels
from diptych.metrics.products import cosine_rows
from diptych.training.folders import evaluation_folder, evaluations_of

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


def test_extended_positives_from_ids_to_numbers(tmp_path: Path) -> None:
    given, file = encoded(), tmp_path / "more.json"
    write_json(file, {"i2t": {"0.jpg": ["0", "1", "11"], "3": ["6", "7"]}})
    more = positives_of(given, f"pairs:{file}")
    truth = ground_truth_of(given, more)
    assert truth.i2t.of(0).tolist() == [0, 1, 11]
    assert truth.queries("i2t").tolist() == [0, 3]
    assert truth.text_image.tolist() == HOME.tolist()
    result = evaluate_encoded(given, tmp_path / "e", ("R@1", "R-precision"), positives=more, samples=0)
    assert result.protocol.about["positives"] == more.line()
    assert "positives pairs of more.json (i2t 4 + 1 − 0, " in result.protocol_line()
    assert "2 i2t queries evaluated" in result.protocol_line()
    scores = cosine_rows(given.images.rows) @ cosine_rows(given.texts.rows).T
    best = np.argsort(-scores, axis=1)
    expected = [len({0, 1, 11} & set(best[0, :3].tolist())) / 3, len({6, 7} & set(best[3, :2].tolist())) / 2]
    assert result.value("R-precision", "i2t") == pytest.approx(np.mean(expected))
    assert sorted(read_qrels(tmp_path / "e" / "i2t.qrels")) == ["0.jpg", "3.jpg"]
    write_json(file, {"t2i": {"900": ["901.jpg"]}})
    message = "is in the collection of 6 images and 12 captions"
    refused(DataError, message, positives_of, given, f"pairs:{file}")


def small(value: float) -> Result:
    return evaluate(value * np.eye(6)[:, HOME], None, ground_truth_of(encoded()), ("R@1",))


def test_an_evaluation_is_found_where_it_is(tmp_path: Path) -> None:
    direct, outer, inside = (
        small(1.0).save(tmp_path / place)
        for place in ("direct", "out/evaluation", "run/evaluation/scenes-test")
    )
    assert evaluation_folder(direct) == direct
    assert evaluation_folder(tmp_path / "out") == outer
    assert evaluation_folder(tmp_path / "run") == evaluation_folder(tmp_path / "run", "scenes-test") == inside
    assert evaluation_folder(tmp_path) is None
    message = "no evaluation called 'coco-test'.*it has: scenes-test"
    refused(UsageError, message, evaluation_folder, tmp_path / "run", "coco-test")
    assert [one.value("R@1", "i2t") for one in evaluations_of(tmp_path / "run")] == [1.0]
    refused(UsageError, "nowhere is no folder", evaluations_of, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    refused(UsageError, "holds no evaluation and no run", evaluations_of, tmp_path / "empty")


def test_a_run_means_its_test_split(run_folder: Path, tmp_path: Path) -> None:
    """The run folder is shared with other tests: look at copies of its recipe only."""
    seeds = tmp_path / "seeds"
    run, *both = tmp_path / "run", seeds / "seed-0", seeds / "seed-1"
    for folder in (run, *both):
        folder.mkdir(parents=True)
        for name in ("run.json", "recipe.toml"):
            (folder / name).write_bytes((run_folder / name).read_bytes())
    refused(UsageError, f"was not evaluated.*diptych evaluate {run}", evaluations_of, run)
    for name in ("scenes-val", "scenes-test"):
        small(1.0).save(run / "evaluation" / name)
    assert evaluation_folder(run) == run / "evaluation" / "scenes-test"
    small(1.0).save(both[0] / "evaluation" / "scenes-test")
    refused(UsageError, "seed-1 of 2 runs was not evaluated", evaluations_of, seeds)
    small(0.0).save(both[1] / "evaluation" / "scenes-test")
    found = [one.value("R@1", "i2t") for one in evaluations_of(seeds)]
    assert found == pytest.approx([1.0, 1 / 6])
