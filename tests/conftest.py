from __future__ import annotations

import gc
import html
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import RECIPE
from hypothesis import settings

# The same examples on every machine, and no timing: a slow machine is not a failure.
settings.register_profile("diptych", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("diptych")

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the libraries that are imported by now."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing a test computes lands in the user's cache."""
    os.environ["DIPTYCH_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", autouse=True)
def _unrendered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Charts on pages are put on their axes, but not rendered; tests of reports and slow tests render them."""
    from diptych.report import figures

    def outline(figure: object, name: str, summary: str) -> str:
        label = html.escape(summary)
        return f'<svg class="figure" id="{name}" role="img" aria-label="{label}" viewBox="0 0 1 1"></svg>'

    with pytest.MonkeyPatch.context() as patch:
        if request.config.option.markexpr == "not slow":
            patch.setattr(figures, "_to_svg", outline)
        yield


@pytest.fixture(scope="session")
def scenes_folder(tmp_path_factory: pytest.TempPathFactory, _cache: None) -> Path:
    """A small dataset of scenes: 48 to train on, 16 to validate, 16 to test."""
    from diptych.data.scenes import make_scenes

    return make_scenes(tmp_path_factory.mktemp("scenes") / "small", 48, 16, 16, size=32, workers=1)


@pytest.fixture
def short_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let linear probes of an audit try one penalty instead of nine."""
    monkeypatch.setattr("diptych.analysis.information.probing.PENALTIES", (1.0,))


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
    fit(run, read_collection(str(run.recipe.data.path)), accelerator="cpu")
    return run.folder


@pytest.fixture(scope="session")
def val(scenes_folder: Path) -> Any:
    """The 16 images and 80 captions of the validation split."""
    from diptych.data import read_collection

    return read_collection(scenes_folder).split("val")
