"""What may only be read can be evaluated: with ``--out`` nothing is written into the run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import Command


def tree(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("embedded", [False, True])
def test_a_run_that_may_only_be_read_is_evaluated(
    diptych: Command, run_folder: Path, tmp_path: Path, embedded: bool
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(run_folder, run, ignore=shutil.ignore_patterns("embeddings", "evaluation"))
    if embedded:
        assert diptych("embed", run).code == 0
    before = tree(run)
    done = diptych("evaluate", run, "--out", out, "--samples", "0")
    assert done.code == 0, done.err
    assert tree(run) == before
    assert (out / "evaluation" / "evaluation.json").is_file() or list(out.rglob("evaluation.json"))
