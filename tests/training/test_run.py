from __future__ import annotations

from pathlib import Path

import pytest

from diptych.core.errors import UsageError
from diptych.training import fit
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
    assert not opened.finished
    with pytest.raises(UsageError, match="already holds a run"):
        Run.prepare(run.folder, recipe)
    with pytest.raises(UsageError, match="holds no run"):
        Run.open(tmp_path)


def test_nothing_is_written_before_it_begins(tmp_path: Path, recipe: Recipe) -> None:
    run, other = (Run.prepare(tmp_path / "r", recipe) for _ in range(2))
    run.keep(lambda: (run.folder / "targets").mkdir(parents=True))
    assert not run.folder.exists()
    run.begin({})
    assert (run.folder / "targets").is_dir()
    with pytest.raises(UsageError, match="holds another run by now"):
        other.begin({})


def test_the_environment_names_no_machine(tmp_path: Path, recipe: Recipe) -> None:
    import socket

    run = begun(tmp_path / "r", recipe)
    text = (run.folder / "environment.json").read_text()
    assert "torch" in text
    assert socket.gethostname() not in text


@pytest.mark.parametrize(
    ("asked", "precision"), [("auto", {True: "bf16-mixed", False: "32-true"}), ("32-true", None)]
)
@pytest.mark.parametrize("has", [True, False])
def test_auto_is_bfloat16_where_the_device_computes_in_it(
    asked: str, precision: dict[bool, str] | None, has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "multiplies_bfloat16", lambda device: has)
    assert fit._precision(asked, "cpu") == (precision[has] if precision else asked)
