from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every machine, and no timing: a slow machine is not a failure.
settings.register_profile("diptych", deadline=None, derandomize=True)
settings.load_profile("diptych")

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing a test computes lands in the user's cache."""
    os.environ["DIPTYCH_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def scenes_folder(tmp_path_factory: pytest.TempPathFactory, _cache: None) -> Path:
    """A small dataset of scenes: 48 to train on, 16 to validate, 16 to test."""
    from diptych.data.scenes import make_scenes

    return make_scenes(tmp_path_factory.mktemp("scenes") / "small", 48, 16, 16, size=32, workers=1)
