"""What every generated dataset guarantees: generated once, found again, never half, never over other files."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import every_byte
from raw_shop_logs import raw_rows
from refusals import refused

from diptych.commerce.scenes.products import Products, make_product_scenes, read_product_scenes
from diptych.commerce.scenes.shop_log import ShopLog, make_shop_log
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, StorageError, UsageError
from diptych.data.collection import Collection
from diptych.data.scenes import make_scenes, read_scenes
from diptych.data.scenes.make import Scenes

SMALL = {"n_train": 4, "n_val": 0, "n_test": 2, "size": 32}
MAKE: dict[str, Callable[..., Path]] = {
    "scenes": lambda folder, **options: make_scenes(folder, **{**SMALL, **options}),
    "product-scenes": lambda folder, **options: make_product_scenes(
        folder, **{"n_products": 10, "size": 32, **options}
    ),
    "shop-log": lambda folder, **options: make_shop_log(folder, **{"visitors": 5, **options}),
}
OTHER = {"scenes": {"k": 3}, "product-scenes": {"skew": 0.5}, "shop-log": {"days": 9}}
GENERATORS: dict[str, Any] = {"scenes": Scenes, "product-scenes": Products, "shop-log": ShopLog}


def rounded(number: str) -> float:
    """Without the last digits, in which processors differ."""
    return float(f"{float(number):.9g}")


def digest(value: object) -> Any:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=list).encode())


def summary(collection: Collection) -> str:
    """Of captions, facts and pixels."""
    records = list(collection.caption_records) if collection.caption_records else None
    texts = [list(collection.captions), list(collection.caption_ids), list(collection.records or ())]
    found = digest([*texts, records])
    for row in np.flatnonzero(collection.pictured):
        found.update(np.asarray(collection.image(int(row))).tobytes())
    return str(found.hexdigest()[:16])


def test_a_seed_means_the_same_for_ever(tmp_path: Path) -> None:
    """If this fails on purpose, raise VERSION, so that nobody's cache holds what was there before."""
    usual = make_scenes(tmp_path / "a", 8, 2, 2, size=32, k=3)
    other = make_scenes(tmp_path / "b", 8, 2, 2, size=48, seed=3, objects=(1, 3))
    assert summary(read_scenes(usual)) == "c5b61240bfa0e278"
    assert summary(read_scenes(other, finer=2)) == "626001d85707d6f1"
    lacking: Any = {"skew": 0.3, "dirt": 0.3, "without_title": 0.2, "in_two_places": 0.2}
    usual = make_product_scenes(tmp_path / "c", 40, size=32)
    other = make_product_scenes(tmp_path / "d", 40, size=32, seed=3, levels=(1, 4), **lacking)
    assert summary(read_product_scenes(usual)) == "06fb70dc77ac4b4b"
    assert summary(read_product_scenes(other)) == "0b37afdfe1566a18"
    truth = json.loads((other / "truth.json").read_text(), parse_float=rounded)
    assert digest(truth).hexdigest()[:16] == "49cfadc790647ca4"
    usual = make_shop_log(tmp_path / "e", visitors=200)
    other = make_shop_log(
        tmp_path / "f", visitors=200, seed=3, days=40, dirt=0.1, format="parquet", zone="UTC"
    )
    assert digest(raw_rows(usual)).hexdigest()[:16] == "aee7db0d97872567"
    assert digest(raw_rows(other)).hexdigest()[:16] == "6edc31e5904b83b5"
    assert [one.version for one in GENERATORS.values()] == [1, 1, 2]


def each_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path, Any]]:
    """Every generator's name, with a folder and patches of its own."""
    for name in MAKE:
        (tmp_path / f"of {name}").mkdir()
        with monkeypatch.context() as patch:
            yield name, tmp_path / f"of {name}", patch


def test_the_cache_is_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder, patch in each_generator(tmp_path, monkeypatch):
        patch.setenv("DIPTYCH_CACHE", str(folder))
        first = MAKE[name](None)
        assert first.parent == folder / name
        before, stamp = every_byte(first), (first / "dataset.json").stat().st_mtime_ns
        assert MAKE[name](None, seed=0) == first
        assert (first / "dataset.json").stat().st_mtime_ns == stamp
        assert len({first, MAKE[name](None, seed=1), MAKE[name](None, **OTHER[name])}) == 3
        for file in sorted(set(before) - {"dataset.json"})[:2]:
            (first / file).unlink()
            assert MAKE[name](None) == first
            assert every_byte(first) == before
        if name != "scenes":  # whose images' sizes are not kept
            (first / file).write_bytes(b"half")
            MAKE[name](None)
            assert every_byte(first) == before
        assert {path.suffix for path in (folder / name).glob(".*")} == {".lock"}


def test_what_stops_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder, patch in each_generator(tmp_path, monkeypatch):
        make_chunk, full = GENERATORS[name].make_chunk, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for stop, error, words in (
            (KeyboardInterrupt(), KeyboardInterrupt, None),
            (full, StorageError, "No space left.*free some space"),
        ):

            def broken(*given: object, stop: BaseException = stop, make: Any = make_chunk) -> None:
                make(*given)
                raise stop

            with patch.context() as inner:
                inner.setattr(GENERATORS[name], "make_chunk", broken)
                refused(error, words, MAKE[name], folder / "one")
            assert not list(folder.iterdir())
        with stop_when(lambda: True):
            refused(Interrupted, "stopped while making", MAKE[name], folder / "one")
        assert not list(folder.iterdir())
        assert MAKE[name](folder / "one").is_dir()


def test_nothing_else_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder, patch in each_generator(tmp_path, monkeypatch):
        (folder / "thesis.tex").write_text("years of work")
        refused(UsageError, "holds other files", MAKE[name], folder)
        refused(UsageError, "is a file", MAKE[name], folder / "thesis.tex")
        (folder / "other").mkdir()
        (folder / "other" / "dataset.json").write_text('{"dataset": "other"}')
        refused(UsageError, "holds other files", MAKE[name], folder / "other")
        (folder / "empty").mkdir()
        made = MAKE[name](folder / "empty")
        before = every_byte(made)
        key, value = next(iter(OTHER[name].items()))
        held = json.loads((made / "dataset.json").read_text())
        refused(UsageError, rf"{key}={held[key]}.*{key}={value}.*requested", MAKE[name], made, **{key: value})
        version = held["version"]
        patch.setattr(GENERATORS[name], "version", version + 1)
        refused(UsageError, rf"version {version} with.*version {version + 1} with", MAKE[name], made)
        assert every_byte(made) == before
        assert (folder / "thesis.tex").read_text() == "years of work"


def test_impossible_wishes(tmp_path: Path) -> None:
    cases: Any = [
        ("scenes", {"n_train": 0, "n_test": 0}, "not all 0"),
        ("scenes", {"objects": (3, 2)}, "objects are '3-2'"),
        ("scenes", {"objects": (1, 2, 3)}, "the least and the most"),
        ("product-scenes", {"n_products": 0}, "n_products: Input should be greater"),
        ("product-scenes", {"levels": (0, 3)}, "levels are '0-3'"),
        ("product-scenes", {"without_title": float("nan")}, "without_title: Input should be less"),
        ("product-scenes", {"effects": {}}, "unknown key 'effects'"),
        ("shop-log", {"visitors": 0}, "visitors: Input should be greater"),
        ("shop-log", {"zone": "Europe/Atlantis"}, "time zone 'Europe/Atlantis'"),
        ("shop-log", {"zone": "../../etc/passwd"}, "time zone"),
        ("shop-log", {"effects": {"hour_shares": 1}}, "hour_shares.*did you mean"),
    ]
    for name, options, words in cases:
        refused(UsageError, words, MAKE[name], tmp_path / "one", **options)
        assert not list(tmp_path.iterdir())
