from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command, Done


@pytest.fixture
def diptych(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process; gives exit code, standard output, standard error."""

    def run(*arguments: object) -> Done:
        from diptych.cli import main

        monkeypatch.setattr("sys.argv", ["diptych", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        code = caught.value.code
        return Done(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


RECIPE = """# diptych train tiny.toml; expect nothing
name = "tiny"
[data]
path = "{path}"
[model]
width = 16
[model.image]
backbone = "test_efficientnet"
[model.image.preprocessing]
size = 32
resize = 32
[model.text]
word_width = 8
min_count = 1
[objective]
name = "infonce"
[batches]
size = 24
[[stages]]
epochs = 2
learning_rate = 1e-3
train = ["*"]
"""


@pytest.fixture(scope="session")
def recipe_file(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    file.write_text(RECIPE.format(path=scenes_folder))
    return file


@pytest.fixture(scope="session")
def run_folder(recipe_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on the small scenes."""
    from diptych.data.readers import read_collection
    from diptych.training.fit import fit
    from diptych.training.recipe import load_recipe
    from diptych.training.run import Run

    run = Run.prepare(tmp_path_factory.mktemp("run") / "tiny", load_recipe(recipe_file))
    run.begin()
    fit(run, read_collection(str(run.recipe.data.path)), accelerator="cpu")
    return run.folder
