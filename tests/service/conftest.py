"""A small service over a dense and a sparse index of the tests' scenes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import diptych as dp
from diptych.service.app import create_app
from diptych.service.options import ServeOptions

QUICK_HEAD: dict[str, Any] = {"training": {"epochs": 1, "batch_size": 16}, "vocabulary": {"size": 80}}
Serve = Callable[..., TestClient]


@pytest.fixture(scope="session")
def indexes(run_folder: Path, scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index ``dense`` of the 16 test images, and ``sparse`` of the same by a head."""
    home = tmp_path_factory.mktemp("served")
    data, encoder = dp.read(scenes_folder), dp.load(run_folder)
    dp.build_index(encoder, data, split="test", out=home / "dense")
    head = dp.sparsify(encoder, data, out=home / "head", **QUICK_HEAD)
    dp.build_index(head, data, split="test", out=home / "sparse")
    return home


def ready(client: TestClient) -> TestClient:
    """Wait until encoders are loaded."""
    until = time.monotonic() + 60
    while client.get("/v1/health").status_code != 200:
        assert time.monotonic() < until, "never ready"
        time.sleep(0.02)
    return client


@pytest.fixture(scope="session")
def client(indexes: Path) -> Iterator[TestClient]:
    """A read-only service over both indexes."""
    app = create_app([str(indexes / "dense"), str(indexes / "sparse")], ServeOptions(log=False))
    with TestClient(app, base_url="http://localhost") as client:
        yield ready(client)


@pytest.fixture
def serve(indexes: Path, tmp_path: Path) -> Iterator[Serve]:
    """Start further services, over copies of indexes, with options."""
    with ExitStack() as opened:

        def start(*names: str, **options: Any) -> TestClient:
            folders = []
            for name in names or ("dense",):
                shutil.copytree(indexes / name, tmp_path / name, dirs_exist_ok=True)
                folders.append(str(tmp_path / name))
            app = create_app(folders, ServeOptions(log=False, **options))
            return ready(opened.enter_context(TestClient(app, base_url="http://localhost")))

        yield start
