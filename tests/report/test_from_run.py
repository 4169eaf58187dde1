from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.report.content import ReportContent, content_of_run
from diptych.report.html import results_table
from diptych.training.recipe import collection_of
from diptych.training.run import Run

Made = tuple[ReportContent, Result, EncodedCollection]


@pytest.fixture(scope="module")
def made(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    run = Run.open(run_folder)
    collection = collection_of(run.recipe.data).split("test")
    folder = tmp_path_factory.mktemp("encoded") / "e"
    encoded = encode_collection(DualEncoder.load(run.best), collection, folder, "test")
    result = evaluate_encoded(encoded, samples=50)
    return content_of_run(run, result, encoded, collection), result, encoded


def test_the_table_holds_the_results_numbers(made: Made) -> None:
    content, result, _ = made
    assert content.scores == result.scores
    table = results_table(content.scores)
    rows = {row[0].text: row for row in table.rows}
    assert list(rows) == ["R@1 %", "R@5 %", "R@10 %", "medr", "meanr", "MRR %", "rsum"]
    value, chance = rows["R@5 %"][3:]
    assert value.value == pytest.approx(100 * result.value("R@5", "t2i"))
    assert chance.value == pytest.approx(100 * 5 / 16)
    low, high = map(float, value.note.split("–"))
    assert low <= float(value.text) <= high
    assert rows["rsum"][1].value == pytest.approx(result.value("rsum"))
    assert content.protocol_line == result.protocol_line()
    assert "encoder" in content.fingerprints


def test_the_curves_are_what_was_logged(made: Made, run_folder: Path) -> None:
    curves = made[0].curves
    assert curves is not None
    lines = list(Run.open(run_folder).metrics())
    assert list(curves.steps) == list(range(1, 21))
    assert list(curves.loss) == [line["loss"] for line in lines if "loss" in line]
    assert list(curves.epochs) == [1, 2]
    # 16 images with 5 captions each: a picture misses the first k of 80 captions with all of its five.
    misses = [np.prod([(80 - k - i) / (80 - i) for i in range(5)]) for k in (1, 5, 10)]
    expected = 100 * sum(1 - miss for miss in misses) + 100 * (1 + 5 + 10) / 16
    assert curves.chance_rsum == pytest.approx(expected)
    assert curves.best_epoch == Run.open(run_folder).numbers["best_epoch"]


def test_examples_are_the_best_and_the_worst(made: Made) -> None:
    content, result, encoded = made
    t2i = [example for example in content.worst_retrievals if example.is_text_to_image]
    worst = np.sort(result.ranks["t2i"])[::-1][: len(t2i)]
    assert [example.right_rank for example in t2i] == [round(rank) for rank in worst]
    scores = np.asarray(encoded.texts.rows) @ np.asarray(encoded.images.rows).T
    for example in [*content.best_retrievals, *content.worst_retrievals]:
        if not example.is_text_to_image:
            continue
        query = list(encoded.texts.ids).index(example.query.name)
        order = np.argsort(-scores[query], kind="stable")[:5]
        assert [hit.name for hit in example.retrieved] == [encoded.images.ids[row] for row in order]
        right = encoded.images.ids[int(encoded.caption_image[query])]
        assert [hit.is_right for hit in example.retrieved] == [hit.name == right for hit in example.retrieved]
        missing = not any(hit.is_right for hit in example.retrieved)
        assert (example.expected is not None) == missing
        if example.expected is not None:
            assert example.expected.name == right
