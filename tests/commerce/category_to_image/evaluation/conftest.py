from __future__ import annotations

from pathlib import Path

import pytest
from tiny_evaluation import evaluated, shop_and_maker

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.features import FeatureMaker


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalogue, FeatureMaker]:
    return shop_and_maker(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def found(shop: tuple[Catalogue, FeatureMaker], tmp_path_factory: pytest.TempPathFactory) -> ModelsEvaluation:
    return evaluated(*shop, tmp_path_factory.mktemp("evaluations") / "one")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "evaluation"
