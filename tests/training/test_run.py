from __future__ import annotations

from pathlib import Path

import pytest

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import write_json
from diptych.training.recipe import Recipe
from diptych.training.run import Run


def begun(folder: Path, recipe: Recipe) -> Run:
    run = Run.prepare(folder, recipe)
    run.begin({"data": "d"})
    return run


def test_a_run_is_its_folder(tmp_path: Path, recipe: Recipe) -> None:
    run = begun(tmp_path / "r", recipe)
    opened = Run.open(run.folder)
    assert opened.recipe == recipe
    assert opened.header["state"] == "running"
    assert not opened.finished
    with pytest.raises(UsageError, match="already holds a run"):
        Run.prepare(run.folder, recipe)
    with pytest.raises(UsageError, match="holds no run"):
        Run.open(tmp_path)


def test_a_run_of_another_version_says_how_to_repeat_it(tmp_path: Path, recipe: Recipe) -> None:
    run = begun(tmp_path / "r", recipe)
    write_json(run.folder / "run.json", {"format": 99, "state": "running"})
    with pytest.raises(StorageError, match="a run of format 99, this version reads format 2") as caught:
        Run.open(run.folder)
    assert "diptych train" in caught.value.fix


def test_metrics_survive_a_cut_line_and_can_be_rewound(tmp_path: Path, recipe: Recipe) -> None:
    run = begun(tmp_path / "r", recipe)
    for step in range(1, 5):
        run.log(step=step, loss=1 / step)
    with open(run.folder / "metrics.jsonl", "a") as handle:
        handle.write('{"step": 5, "lo')
    assert [line["step"] for line in run.metrics()] == [1, 2, 3, 4]
    run.rewind_metrics(2)
    run.log(step=3, loss=0.0)
    assert [line["step"] for line in run.metrics()] == [1, 2, 3]
    assert list(begun(tmp_path / "empty", recipe).metrics()) == []


def test_the_environment_names_no_machine(tmp_path: Path, recipe: Recipe) -> None:
    import socket

    run = begun(tmp_path / "r", recipe)
    text = (run.folder / "environment.json").read_text()
    assert "torch" in text
    assert socket.gethostname() not in text
