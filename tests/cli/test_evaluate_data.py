"""``diptych evaluate`` on other data, on given embeddings and into other folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Command

from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.evaluation.evaluate_encoder import ground_truth_of
from diptych.metrics import SIMILARITIES

QUICK = ("--samples", 0, "--measure", "R@1", "--measure", "rsum")


@pytest.fixture
def run(run_folder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    return folder


@pytest.fixture
def other(scenes_folder: Path, tmp_path: Path) -> Path:
    """The same dataset by name and split, with other captions."""
    folder = tmp_path / "other"
    shutil.copytree(scenes_folder, folder)
    file = next(folder.glob("*.json"))
    given = json.loads(file.read_text())
    for image in given["images"]:
        for sentence in image["sentences"]:
            sentence["raw"] = f"well, {sentence['raw']}"
    file.write_text(json.dumps(given))
    return folder


def test_other_data_of_the_same_name_overwrites_nothing(diptych: Command, run: Path, other: Path) -> None:
    assert diptych("evaluate", run, *QUICK).code == 0
    own = Result.open(run / "evaluation" / "scenes-test")
    for _ in range(2):  # the second time its own folder is written again
        done = diptych("evaluate", run, "--data", other, *QUICK)
        assert done.code == 0, done.err
    names = sorted(folder.name for folder in (run / "evaluation").iterdir())
    assert len(names) == 2
    assert Result.open(run / "evaluation" / "scenes-test").protocol == own.protocol
    theirs = Result.open(run / "evaluation" / names[1]).protocol.about["data"]
    assert names == ["scenes-test", f"scenes-test-{theirs[:8]}"]
    assert theirs != own.protocol.about["data"]
    assert len(list((run / "embeddings").glob("scenes-test*"))) == 2


def test_an_encoders_folder_keeps_evaluations_apart(
    diptych: Command, run: Path, scenes_folder: Path, other: Path
) -> None:
    for data in (scenes_folder, other):
        done = diptych("evaluate", run / "best", "--data", data, *QUICK)
        assert done.code == 0, done.err
    assert len(list((run / "best" / "evaluation").iterdir())) == 2


def test_embeddings_that_exist_are_used_with_out(diptych: Command, run: Path, tmp_path: Path) -> None:
    assert diptych("evaluate", run, *QUICK).code == 0
    done = diptych("evaluate", run, *QUICK, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert [folder.name for folder in (tmp_path / "out").iterdir()] == ["evaluation"]
    found = Result.open(tmp_path / "out" / "evaluation")
    assert found.values() == Result.open(run / "evaluation" / "scenes-test").values()


def given_rows(encoded: EncodedCollection, folder: Path, seed: int = 0) -> Path:
    """The embeddings at other lengths, as another tool might have written them."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    for name, side in (("images", encoded.images), ("texts", encoded.texts)):
        lengths = random.uniform(0.5, 3, (len(side), 1)).astype(np.float32)
        np.save(folder / f"{name}.npy", np.asarray(side.rows) * lengths)
        (folder / f"{name}.txt").write_text("".join(f"{one}\n" for one in side.ids))
    return folder


def test_python_and_the_command_line_agree_on_given_rows(
    diptych: Command, run: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    assert diptych("evaluate", run, *QUICK).code == 0
    encoded = EncodedCollection.open(run / "embeddings" / "scenes-test")
    folder = given_rows(encoded, tmp_path / "rows")
    out = tmp_path / "out"
    done = diptych("evaluate", f"rows:{folder}", "--data", scenes_folder, *QUICK, "--out", out)
    assert done.code == 0, done.err
    rows = [np.load(folder / f"{name}.npy") for name in ("images", "texts")]
    by_hand = evaluate(*rows, ground_truth_of(encoded), ("R@1", "rsum"), similarity="cosine")
    found = Result.open(out / "evaluation")
    assert found.values() == by_hand.values()
    for way, values in by_hand.ranks.items():
        assert found.ranks[way].tolist() == values.tolist()
    # Inner products of these rows are another ranking, which had gone by the name of the cosine.
    assert evaluate(*rows, ground_truth_of(encoded), ("rsum",), similarity="dot").values() != by_hand.values()
    # Beside the run that they are of: data of another kind, the same images and captions.
    both = diptych("compare", run, out, "--out", tmp_path / "comparison.json")
    assert both.code == 0, both.err
    assert "have the same ids; their data are pictures and rows" in both.out.replace("\n", " ")


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
def test_python_and_the_command_line_agree_over_all_similarities(
    diptych: Command, similarity: str, tmp_path: Path
) -> None:
    random = np.random.default_rng(5)
    images, texts = (random.normal(size=(n, 6)).astype(np.float32) * 3 for n in (10, 20))
    home, folder = np.repeat(np.arange(10), 2), tmp_path / "embedded"
    about = {"dataset": "made", "split": "test", "data": "d", "encoder": {"name": "made"}}
    sides = [
        Embeddings([f"{kind}{n}" for n in range(len(rows))], rows, "e", "d", kind, about, similarity)
        for kind, rows in (("image", images), ("text", texts))
    ]
    EncodedCollection(*sides, home, about).save(folder)
    write_json(folder / "origin.json", {"model": "made", "data": {}, "split": "test"})
    done = diptych("evaluate", folder, *QUICK, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    encoded = EncodedCollection.open(folder)
    by_hand = evaluate(images, texts, ground_truth_of(encoded), ("R@1", "rsum"), similarity=similarity)
    found = Result.open(tmp_path / "out" / "evaluation")
    assert found.values() == by_hand.values()
    assert f"similarity {similarity}" in found.protocol_line()
    assert f"similarity {similarity}" in by_hand.protocol_line()
