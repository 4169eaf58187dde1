from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_matching import FakeMatching
from ranking import evaluate_reranked

from diptych.core.errors import MismatchError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import rerank
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of
from diptych.metrics import GroundTruth, Reranked, read_qrels, read_run


@pytest.fixture(scope="module")
def made(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[EncodedCollection, Reranked]:
    collection = read_collection(str(scenes_folder)).split("test")
    encoded = encode_collection(FakeMatching(), collection, tmp_path_factory.mktemp("rows"), "test")
    return encoded, rerank(FakeMatching(), collection, encoded, 5)


@pytest.mark.parametrize("unranked", ["miss", "contrastive", "published"])
def test_numbers_files_and_protocol(
    unranked: str, made: tuple[EncodedCollection, Reranked], tmp_path: Path
) -> None:
    encoded, reranked = made
    result = evaluate_encoded(encoded, tmp_path / "e", reranked=reranked, k=3, unranked=unranked, samples=20)
    expected = evaluate_reranked(
        reranked,
        ground_truth_of(encoded),
        k=3,
        unranked=unranked,
        images=encoded.images.rows,
        texts=encoded.texts.rows,
    )
    assert result.values() == expected.values()
    line = Result.open(tmp_path / "e").protocol_line()
    assert line.startswith(f"dataset scenes; split test; encoder {FakeMatching().fingerprint}; data ")
    assert f"re-ranked k_test 3 by matching score, unranked {unranked}: " in line
    assert "intervals from 20 resamples" in line
    # The run files give the same recall: candidates alone, in the order of the head.
    for name, n in (("i2t", 16), ("t2i", 80)):
        run, qrels = read_run(tmp_path / "e" / f"{name}.run"), read_qrels(tmp_path / "e" / f"{name}.qrels")
        assert len(run) == len(qrels) == n
        assert {len(found) for found in run.values()} == {3}
        first = [qrels[query].get(found[0][0], 0) for query, found in run.items()]
        assert np.mean(first) == pytest.approx(result.value("R@1", name))  # type: ignore[arg-type]


def test_own_ground_truth(made: tuple[EncodedCollection, Reranked]) -> None:
    encoded, reranked = made
    best = reranked.i2t.items[np.arange(16), reranked.i2t.matching.argmax(axis=1)]
    truth = GroundTruth.from_pairs(np.arange(16), best, 16, 80)
    result = evaluate_encoded(encoded, reranked=reranked, measures=["R@1"], ground_truth=truth, samples=0)
    assert result.value("R@1", "i2t") == 1


def test_candidates_of_other_embeddings(made: tuple[EncodedCollection, Reranked]) -> None:
    encoded, reranked = made
    for key in ("encoder", "data"):
        other = replace(reranked, about={**reranked.about, key: "other"})
        with pytest.raises(MismatchError, match=f"the candidates are of {key} other, the embeddings of "):
            evaluate_encoded(encoded, reranked=other)
    with pytest.raises(UsageError, match="k = 6, but 5 candidates"):
        evaluate_encoded(encoded, reranked=reranked, k=6)
