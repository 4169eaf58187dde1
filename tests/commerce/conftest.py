"""The small shop, one trained head, one log and one scorer: made once per worker, shared; never write into them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from category_rows import made_shop
from events import write_log
from feature_tables import small_features
from intent_logs import random_events
from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import TrainOptions as HeadOptions
from diptych.commerce.category_to_image.training import TrainedModel
from diptych.commerce.category_to_image.training import train as train_head
from diptych.commerce.logs import Log
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    """The catalogue of 24 products."""
    return tiny_catalogue(tmp_path_factory.mktemp("shop") / "pictures")


@pytest.fixture(scope="session")
def product_head() -> TrainedModel:
    """Heads trained on the rows of ``made_shop``."""
    options = HeadOptions(hidden=12, width=6, epochs=2, batch_size=10, normalise="after")
    return train_head(*made_shop(), options)


@pytest.fixture(scope="session")
def shop_log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A log with late log-ins, overlaps, ties and purchases."""
    return write_log(tmp_path_factory.mktemp("log") / "log", random_events(6, visitors=3, sessions=24))


@pytest.fixture(scope="session")
def features(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    """A table of features with planted effects."""
    return small_features(tmp_path_factory.mktemp("features") / "shop", n=1500)


@pytest.fixture(scope="session")
def options() -> TrainOptions:
    """Of a scorer that is trained fast."""
    return TrainOptions(model="logistic-regression", samples=20, background=30, folds=2)


@pytest.fixture(scope="session")
def scorer(features: FeatureTable, options: TrainOptions, tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    """A scorer of every setting and step."""
    return train(features, tmp_path_factory.mktemp("scorer") / "shop", options=options)


@pytest.fixture(scope="session")
def engine(_cache: None) -> Iterator[Engine]:
    """DuckDB on one thread."""
    with open_engine(threads=1) as opened:
        yield opened


@pytest.fixture(scope="session")
def spark(_cache: None) -> Iterator[Engine]:
    """Spark on one thread; whoever opens the engine spark meanwhile shares its session."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    # Half of the time of small queries is spent on making them fast.
    with pytest.MonkeyPatch.context() as quick:
        quick.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        engine = open_engine("spark", threads=1, memory_limit="1GB")
    small = {"adaptive.enabled": "false", "shuffle.partitions": "2"}
    for name, value in {"codegen.wholeStage": "false", "codegen.factoryMode": "NO_CODEGEN", **small}.items():
        engine._session.conf.set(f"spark.sql.{name}", value)  # type: ignore[attr-defined]
    with engine:
        yield engine
