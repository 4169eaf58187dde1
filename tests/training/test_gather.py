"""Two processes with half a batch each compute what one with the whole batch computes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from diptych.training.batch_loss import gather_rows, positives_of
from diptych.training.recipe import Recipe
from diptych.training.run import Run

from .test_fit import trained


def test_a_single_process_keeps_its_rows() -> None:
    rows = torch.randn(3, 2)
    assert gather_rows(rows) is rows


def test_positives() -> None:
    found = positives_of(torch.tensor([7, 9]), torch.tensor([9, 7, 7]))
    assert found.tolist() == [[False, True, True], [True, False, False]]


def run_in_two(folder: Path, recipe: Recipe) -> Run:
    (folder.parent / f"{folder.name}.toml").write_text(recipe.to_toml())
    command = [sys.executable, "-m", "diptych", "train", str(folder.parent / f"{folder.name}.toml")]
    command += ["--out", str(folder), "--devices", "2", "--accelerator", "cpu"]
    command += ["--features", str(folder.parent / "f")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("best validation rsum") == 1
    return Run.open(folder)


@pytest.mark.parametrize("chunk", [None, 11], ids=["whole", "chunks"])
def test_two_processes_train_as_one(cached_recipe: Recipe, tmp_path: Path, chunk: int | None) -> None:
    """Shares of different sizes, a learned temperature, a decoder, a multiplier; chunks sum gradients by hand.

    23 does not divide by two, and "captions" batches hold images with several captions. A chunk of 11 holds
    the whole share of one process and not that of the other.
    """
    values = cached_recipe.model_dump()
    values["model"]["text"]["dropout"] = 0.0
    values["stages"] = [{**stage, "epochs": 1} for stage in values["stages"]]
    values["batches"] |= {"size": 23, "plan": "captions"}
    values["reconstruction"] = {
        "targets": {"kind": "lsa", "width": 8},
        "hidden": [8, 8],
        "constraint": {"bound": 0.3, "learning_rate": 0.1},
    }
    one = trained(tmp_path / "one", Recipe.model_validate(values), tmp_path / "f")
    values["batches"]["chunk"] = chunk
    two = run_in_two(tmp_path / "two", Recipe.model_validate(values))
    for key in ("loss", "contrastive", "reconstruction", "multiplier", "gradient_norm", "temperature"):
        first, second = ([line[key] for line in run.metrics() if "loss" in line] for run in (one, two))
        assert len(first) == 22
        np.testing.assert_allclose(first, second, rtol=1e-3, err_msg=key)
    a, b = (load_file(run.folder / "checkpoint" / "weights.safetensors") for run in (one, two))
    for key in a:
        np.testing.assert_allclose(a[key], b[key], atol=1e-4, err_msg=key)
