"""Services before one Qdrant collection with dense vectors and terms, opened by its address alone."""

from __future__ import annotations

import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from qdrant_server import qdrant_server
from starlette.testclient import TestClient

import diptych as dp
from diptych.service.app import create_app
from diptych.service.options import ServeOptions
from tests.service.conftest import ready
from tests.service.test_api import ids_of, search

pytest.importorskip("qdrant_client", reason="qdrant-client (the extra 'qdrant') is not installed")


def test_two_services_before_one_collection(
    client: TestClient, indexes: Path, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    data = dp.read(scenes_folder)
    with qdrant_server() as server, ExitStack() as opened:
        where = {"split": "test", "url": server.url, "collection": "shop"}
        dp.build_index(dp.load(run_folder), data, engine="qdrant", out=tmp_path / "dense", **where)
        dp.build_index(indexes / "head", data, engine="qdrant-sparse", out=tmp_path / "terms", **where)
        targets = [f"qdrant:{server.url}/shop", f"qdrant:{server.url}/shop/terms"]
        one, two = (
            ready(opened.enter_context(TestClient(app, base_url="http://localhost")))
            for app in (create_app(targets, ServeOptions(log=False, writable=True)) for _ in range(2))
        )
        dense, terms = (one["name"] for one in one.get("/v1/indexes").json()["indexes"])
        for name, local in ((dense, "dense"), (terms, "sparse")):
            mine, expected = (
                search(service, text="a red square", index=[index], k=5)
                for service, index in ((one, name), (client, local))
            )
            assert ids_of(mine) == ids_of(expected)
            assert [hit["captions"] for hit in mine] == [hit["captions"] for hit in expected]
        assert search(one, item=ids_of(mine)[0], index=[dense], k=3)
        assert len(search(one, text="a red square", index=[dense, terms], k=4)) == 4
        gone = ids_of(mine)[0]
        assert one.delete(f"/v1/items/{gone}", params={"index": dense}).status_code == 200
        assert gone not in ids_of(search(two, text="a red square", index=[dense], k=16))
        assert gone in ids_of(search(two, text="a red square", index=[terms], k=16))


def test_the_composed_service_is_one_that_starts() -> None:
    """Its command, extras and shards are known here; no container is started."""
    root = Path(__file__).parents[2]
    composed: dict[str, Any] = yaml.safe_load((root / "compose.yaml").read_text())["services"]
    verb, target, *options = composed["serve"]["command"].split()
    given = dict(zip(options[::2], options[1::2], strict=True))
    ServeOptions(**{name.removeprefix("--"): value for name, value in given.items()})
    assert (verb, target) == ("serve", "qdrant:http://qdrant:6333/shop")
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(composed["serve"]["build"]["args"]["EXTRAS"].split(",")) <= set(extras)
    nodes = [composed[f"qdrant-{number}"] for number in (1, 2, 3)]
    assert [f"http://qdrant-{number}:6335" for number in (1, 2, 3)] == [one["command"][2] for one in nodes]
    assert all(one["command"][4] == nodes[0]["command"][2] for one in nodes[1:])
