"""``diptych adapt``: from an encoder and a few pairs to an encoder that everything else takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Command

from diptych.encoders.embeddings import EncodedCollection


def test_a_run_is_adapted_evaluated_and_adapted_again(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "adapted"
    done = diptych("adapt", run_folder, "--pairs", 12, "--seed", 1, "--out", out)
    assert done.code == 0, done.err
    assert "adapted on 12 pairs of" in done.out
    assert "train (seed 1), gaussian, strength" in done.out
    assert "was trained on these pairs" in done.out
    assert f"next: diptych evaluate {out} --data {scenes_folder}" in done.out
    done = diptych("evaluate", out, "--data", scenes_folder)
    assert done.code == 0, done.err
    assert "16 images" in done.out
    about = EncodedCollection.open(next((out / "embeddings").iterdir())).about
    assert about["encoder"]["adapted"]["pairs"] == 12
    done = diptych("info", out)
    assert done.code == 0, done.err
    assert "adapted" in done.out
    twice = diptych("adapt", out, "--data", scenes_folder, "--pairs", 4, "--out", tmp_path / "twice")
    assert twice.code == 0, twice.err
    assert "was trained on these pairs" not in twice.out


def test_no_pairs_leave_the_encoder_as_it_is(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    done = diptych("adapt", run_folder, "--data", scenes_folder, "--pairs", 0, "--out", tmp_path / "none")
    assert done.code == 0, done.err
    assert "change nothing: the encoder stays as it is" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pairs", 1000), "1,000 pairs of"),
        (("--method", "lora"), "got 'lora'"),
        (("--captions", "two"), "captions 'two'"),
        (("--split", "nowhere"), "'nowhere'"),
        (("--strength", 0), "strength: Input should be greater"),
    ],
)
def test_usage_errors(
    options: tuple[object, ...], message: str, diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    done = diptych("adapt", run_folder, "--out", tmp_path / "out", *options)
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_where_to_write_is_looked_at_first(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    done = diptych("adapt", run_folder)
    assert (done.code, "nowhere to write" in done.err) == (2, True)
    (tmp_path / "letters.txt").write_text("dear")
    done = diptych("adapt", run_folder, "--out", tmp_path)
    assert done.code == 2
    assert "holds other things" in done.err
    best = run_folder / "best"
    done = diptych("adapt", best, "--data", run_folder, "--out", best)
    assert done.code == 2
    assert "is what is adapted" in done.err


def test_rows_of_nobody_cannot_be_adapted(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    for kind in ("images", "texts"):
        np.save(rows / f"{kind}.npy", np.ones((1, 2), np.float32))
        (rows / f"{kind}.txt").write_text("a\n")
    done = diptych("adapt", f"rows:{rows}", "--data", scenes_folder, "--out", tmp_path / "out")
    assert done.code == 2
    assert "no encoder that could be adapted" in done.err
