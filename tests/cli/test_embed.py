"""``diptych embed``: stopped, gone on with, and what it refuses."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Command

from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.two_tower import TwoTowerEncoder


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    diptych: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 4)
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert diptych("embed", run_folder, "--out", whole).code == 0
    encode, seen = TwoTowerEncoder.encode_prepared, 0

    def interrupted(self: TwoTowerEncoder, prepared: Any, positions: Any) -> np.ndarray:
        nonlocal seen
        seen += len(prepared)
        if seen == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return encode(self, prepared, positions)

    monkeypatch.setattr(TwoTowerEncoder, "encode_prepared", interrupted)
    stopped = diptych("embed", run_folder, "--out", out)
    assert stopped.code == 130
    assert "stopped: 8 of 16 images and 0 of 80 captions are embedded and kept" in stopped.err
    assert "the same command resumes" in stopped.err
    early = diptych("evaluate", out)
    assert (early.code, "is not finished" in early.err) == (2, True)

    done = diptych("embed", run_folder, "--out", out)
    assert done.code == 0, done.err
    assert "16 pictures and 80 captions" in done.out
    assert seen == 16
    found, expected = EncodedCollection.open(out), EncodedCollection.open(whole)
    assert np.array_equal(found.images.rows, expected.images.rows)
    assert np.array_equal(found.texts.rows, expected.texts.rows)


def test_devices_that_are_not_there_are_refused(
    diptych: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for processes, accelerator, said in (
        (2, "cuda", "2 processes for 0 GPUs"),
        (2, "mps", "accelerator 'mps' with 2 processes"),
        (1, "abacus", "device 'abacus' cannot be used"),
    ):
        done = diptych(
            *("embed", run_folder, "--out", tmp_path / "e"),
            *("--processes", processes, "--accelerator", accelerator),
        )
        assert (done.code, said in done.err) == (2, True), done.err
    assert diptych("embed", run_folder, "--processes", 0).code == 2
    for name in ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID"):
        monkeypatch.delenv(name, raising=False)
    for accelerator, said in (
        ("cpu", "2 machines, and nothing says which of them this is"),
        ("tpu", "accelerator 'tpu' on 2 machines"),
    ):
        done = diptych("embed", run_folder, "--nodes", 2, "--accelerator", accelerator)
        assert (done.code, said in done.err) == (2, True), done.err
