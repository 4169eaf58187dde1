from __future__ import annotations

from pathlib import Path

import ir_measures
import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, StorageError
from diptych.evaluation import evaluate
from diptych.metrics import (
    GroundTruth,
    RowProducts,
    read_qrels,
    read_run,
    top_k,
    write_qrels,
    write_run,
    write_trec,
)

OURS_AND_THEIRS = {
    "R@1": "Success@1",
    "R@5": "Success@5",
    "MRR": "RR",
    "MRR@5": "RR@5",
    "P@5": "P@5",
    "mAP": "AP",
    "mAP@10": "AP@10",
    "R-precision": "Rprec",
}


def case() -> tuple[np.ndarray, np.ndarray, GroundTruth, list[str], list[str]]:
    """30 images, 100 texts, 1 to 8 positives for each query, nothing tied."""
    random = np.random.default_rng(4)
    images, texts = (random.normal(size=(n, 12)).astype(np.float32) for n in (30, 100))
    pairs = random.random((30, 100)) < 0.03
    pairs[np.arange(100) % 30, np.arange(100)] = True
    truth = GroundTruth.from_pairs(*np.nonzero(pairs), 30, 100)
    assert truth.i2t.counts.max() <= 10
    return images, texts, truth, [f"{i}.jpg" for i in range(30)], [f"{t // 5}#{t % 5}" for t in range(100)]


@pytest.mark.parametrize("from_image", [0, 3])
def test_ir_measures_agrees_on_the_files(tmp_path: Path, from_image: int) -> None:
    """Also where the first images have no positive."""
    images, texts, truth, image_ids, text_ids = case()
    kept = truth.i2t.queries >= from_image
    truth = GroundTruth.from_pairs(truth.i2t.queries[kept], truth.i2t.rows[kept], 30, 100)
    paths = write_trec(tmp_path, RowProducts(images, texts), truth, image_ids, text_ids, k=100)
    assert sorted(paths) == ["i2t.qrels", "i2t.run", "t2i.qrels", "t2i.run"]
    result = evaluate(images, texts, truth, tuple(OURS_AND_THEIRS), similarity="dot")
    for direction in ("i2t", "t2i"):
        theirs = ir_measures.calc_aggregate(
            [ir_measures.parse_measure(name) for name in OURS_AND_THEIRS.values()],
            ir_measures.read_trec_qrels(str(paths[f"{direction}.qrels"])),
            ir_measures.read_trec_run(str(paths[f"{direction}.run"])),
        )
        by_name = {str(name): value for name, value in theirs.items()}
        for ours, name in OURS_AND_THEIRS.items():
            assert result.value(ours, direction) == pytest.approx(by_name[name], abs=1e-9), (direction, ours)


def test_there_and_back(tmp_path: Path) -> None:
    images, texts, truth, image_ids, text_ids = case()
    paths = write_trec(tmp_path, RowProducts(images, texts), truth, image_ids, text_ids, k=7, tag="mine")
    run, qrels = read_run(paths["t2i.run"]), read_qrels(paths["t2i.qrels"])
    rows, scores = top_k(texts, images, 7)
    assert list(run) == text_ids
    for query, name in enumerate(text_ids):
        assert [document for document, _ in run[name]] == [image_ids[row] for row in rows[query]]
        assert [score for _, score in run[name]] == pytest.approx(scores[query], rel=1e-6)
        assert qrels[name] == {image_ids[row]: 1 for row in truth.t2i.of(query)}
    first = paths["t2i.run"].read_text().splitlines()[0].split()
    assert first[:4] == ["0#0", "Q0", image_ids[rows[0, 0]], "1"]
    assert first[5] == "mine"


def test_scores_keep_order_and_ties_in_float32(tmp_path: Path) -> None:
    close = np.array([[1.0, 1.0 - 1e-12, 1.0 - 1e-12, 1.0 - 2e-12, 0.5]])
    write_run(tmp_path / "run", ["q"], list("abcde"), np.arange(5)[None], close)
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    written = [np.float32(line[4]) for line in lines]
    assert written[0] > written[1] == written[2] > written[3] > written[4] == 0.5
    assert np.allclose(written, close[0], atol=1e-6)
    # trec_eval's order: the tied by descending document id, whatever the rank column says.
    assert [line[2] for line in lines] == list("abcde")
    assert [document for document, _ in read_run(tmp_path / "run")["q"]] == list("acbde")


@pytest.mark.parametrize("bad", ["a b", "a\t", "", "a\n", " a"])
def test_ids_with_white_space(tmp_path: Path, bad: str) -> None:
    rows, scores, truth = np.zeros((1, 1), int), np.zeros((1, 1)), GroundTruth.from_caption_image([0], 1)
    space = r"query id .* \(row 0\) is empty or holds white space"
    refused(DataError, space, write_run, tmp_path / "run", [bad], ["d"], rows, scores)
    refused(DataError, "document id", write_run, tmp_path / "run", ["q"], [bad], rows, scores)
    refused(DataError, "run id", write_run, tmp_path / "run", ["q"], ["d"], rows, scores, tag=bad)
    refused(DataError, "document id", write_qrels, tmp_path / "qrels", ["q"], [bad], truth.i2t)
    assert not list(tmp_path.iterdir())


def test_ids_that_do_not_fit_and_files_that_are_not(tmp_path: Path) -> None:
    truth, file = GroundTruth.from_caption_image([0, 0], 1).i2t, tmp_path / "file"
    refused(DataError, "2 query ids for 1 querys", write_qrels, file, ["q", "r"], ["a", "b"], truth)
    refused(DataError, "document ids are not unique", write_qrels, file, ["q"], ["a", "a"], truth)
    refused(StorageError, "does not exist", read_run, file)
    file.write_text("q Q0 d 1 0.5 tag\n\nq Q0 d 2 0.5\n")
    refused(StorageError, "line 3: 6 fields expected, got 5", read_run, file)
    file.write_text("q 0 d yes\n")
    refused(StorageError, "line 1: 'yes' is not a number", read_qrels, file)
