from __future__ import annotations

from pathlib import Path

import pytest

from diptych.commerce.scenes.shop_log import make_shop_log


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean log as CSV."""
    return make_shop_log(tmp_path_factory.mktemp("made") / "shop", visitors=900, seed=5)


@pytest.fixture(scope="session")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same visitors in Parquet, among rows that are no events."""
    folder = tmp_path_factory.mktemp("made") / "dirty"
    return make_shop_log(folder, visitors=900, seed=5, dirt=0.02, format="parquet")
