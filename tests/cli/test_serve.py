"""``diptych serve`` as users start it, and what it answers for shops."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from diptych.service.app import create_app
from diptych.service.options import ServeOptions


def ready(client: TestClient) -> TestClient:
    until = time.monotonic() + 60
    while client.get("/v1/health").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.02)
    return client


@pytest.fixture(scope="module")
def shop(trained, scorer, tmp_path_factory):
    """A service over an index of products, with a scorer."""
    from commands import command

    folder = tmp_path_factory.mktemp("products") / "index"
    command(f"categories index {trained[1]} --out {folder}")
    app = create_app([str(folder)], ServeOptions(log=False, scorer=scorer.folder))
    with TestClient(app, base_url="http://localhost") as client:
        yield ready(client)


def test_categories_get_images_and_products_categories(shop, trained):
    tree = shop.get("/categories").text
    address, name = re.search(r'<a href="(/\?q=[^"]+)">([^<]+)</a>', tree).groups()
    assert 'data-id="' in shop.get(address.replace("&amp;", "&")).text
    picks = shop.post("/v1/categories/pick", json={"categories": [name], "k": 3}).json()["picks"][name]
    assert 1 <= len(picks) <= 3
    assert all(pick["image"] and Path(pick["path"]).is_file() for pick in picks)
    found = shop.post("/v1/search", json={"text": name, "k": 40}).json()["hits"]
    assert [hit["id"] for hit in found if hit["image"]][: len(picks)] == [pick["id"] for pick in picks]
    items = [hit["id"] for hit in found[:4]]
    filled = shop.post("/v1/categories/fill", json={"items": items, "threshold": 0}).json()["products"]
    assert [one["id"] for one in filled] == items
    assert all(one["path"] and 0 <= one["confidence"] <= 1 for one in filled)
    bad = shop.post("/v1/categories/fill", json={"items": ["none"]})
    assert (bad.status_code, "none" in bad.json()["detail"]) == (404, True)


def test_sessions_are_scored_as_by_the_command(shop, scorer):
    session = json.loads((scorer.folder / "example.json").read_text(encoding="utf-8"))
    good, bad = shop.post("/v1/intent/score", json={"sessions": [session, {}], "reasons": 2}).json()["scores"]
    assert good == scorer.answer(json.dumps(session), reasons=2)
    assert "error" in bad


def test_serving_from_start_to_stop(diptych, trained, tmp_path):
    folder = tmp_path / "index"
    diptych(f"categories index {trained[1]} --out {folder}")
    command = [sys.executable, "-m", "diptych", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = "".join(process.stdout.readline() for _ in range(3))
        address = re.search(r"http://\S+?:\d+", said)[0]
        until = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{address}/v1/health") as answer:
                    assert json.loads(answer.read())["ready"]
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0
    assert "next: curl" in said
    lines = [json.loads(one) for one in log.splitlines() if one.startswith("{")]
    assert {"time", "request", "method", "route", "status", "ms"} <= set(lines[-1])


def test_what_cannot_be_served_is_refused(diptych, tmp_path):
    diptych(f"serve {tmp_path}/none", refused=["there is no index", "diptych demo"])
    diptych(f"serve {tmp_path}", refused=["there is no index", "diptych index"])
    diptych(f"serve {tmp_path} --no-auth --token x", refused=["--no-auth with a token"])
    diptych(f"serve {tmp_path} --port 99999", refused=["65535"])
