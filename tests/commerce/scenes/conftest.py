from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diptych.commerce.scenes.products import make_product_scenes, read_product_scenes
from diptych.data.collection import Collection

OPTIONS: dict[str, Any] = {
    "seed": 3,
    "size": 32,
    "without_picture": 0.1,
    "without_title": 0.1,
    "without_attributes": 0.1,
    "without_category": 0.1,
    "in_two_places": 0.1,
    "dirt": 0.3,
}


@pytest.fixture(scope="session")
def options() -> dict[str, Any]:
    """What ``shop`` is made with."""
    return OPTIONS


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 products that lack this and that."""
    return make_product_scenes(tmp_path_factory.mktemp("made") / "shop", 200, workers=1, **OPTIONS)


@pytest.fixture(scope="session")
def products(shop: Path) -> Collection:
    return read_product_scenes(shop)
