"""What every generated dataset guarantees: generated once, found again, never half, never over other files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from diptych.core.errors import StorageError, UsageError
from diptych.data.scenes import make, make_product_scenes, make_scenes, make_shop_log
from diptych.data.scenes.products import make as make_products
from diptych.data.scenes.shop_log import make as make_log

MAKE: dict[str, Callable[..., Path]] = {
    "scenes": lambda folder, **options: make_scenes(folder, 4, 0, 2, size=32, **options),
    "product-scenes": lambda folder, **options: make_product_scenes(folder, 10, size=32, **options),
    "shop-log": lambda folder, **options: make_shop_log(folder, visitors=5, **options),
}
OTHER = {"scenes": {"k": 3}, "product-scenes": {"skew": 0.5}, "shop-log": {"days": 9}}
MODULES = {"scenes": make, "product-scenes": make_products, "shop-log": make_log}
WRITES = {"scenes": "make_chunk", "product-scenes": "make_chunk", "shop-log": "raw_table"}

every_generator = pytest.mark.parametrize("name", list(MAKE))


def every_byte(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@every_generator
def test_the_cache_is_filled_once_and_repaired(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path))
    first = MAKE[name](None)
    assert first.parent == tmp_path / name
    before, stamp = every_byte(first), (first / "dataset.json").stat().st_mtime_ns
    assert MAKE[name](None, seed=0) == first
    assert (first / "dataset.json").stat().st_mtime_ns == stamp
    assert len({first, MAKE[name](None, seed=1), MAKE[name](None, **OTHER[name])}) == 3
    for file in sorted(set(before) - {"dataset.json"})[:2]:
        (first / file).unlink()
        assert MAKE[name](None) == first
        assert every_byte(first) == before
    if name != "scenes":  # whose pictures' sizes are not kept
        (first / file).write_bytes(b"half")
        MAKE[name](None)
        assert every_byte(first) == before
    assert {path.suffix for path in (tmp_path / name).glob(".*")} == {".lock"}


@every_generator
@pytest.mark.parametrize(
    ("error", "seen", "said"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            StorageError,
            "No space left.*free some space",
        ),
    ],
)
def test_what_stops_half_way_leaves_nothing(
    name: str,
    error: BaseException,
    seen: type[BaseException],
    said: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = getattr(MODULES[name], WRITES[name])

    def broken(*given: object) -> None:
        write(*given)
        raise error

    monkeypatch.setattr(MODULES[name], WRITES[name], broken)
    with pytest.raises(seen, match=said):
        MAKE[name](tmp_path / "one")
    assert not list(tmp_path.iterdir())


@every_generator
def test_nothing_else_is_overwritten(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="holds other files"):
        MAKE[name](tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        MAKE[name](tmp_path / "thesis.tex")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "dataset.json").write_text('{"dataset": "other"}')
    with pytest.raises(UsageError, match="holds other files"):
        MAKE[name](tmp_path / "other")
    (tmp_path / "empty").mkdir()
    folder = MAKE[name](tmp_path / "empty")
    before = every_byte(folder)
    key, value = next(iter(OTHER[name].items()))
    held = json.loads((folder / "dataset.json").read_text())
    with pytest.raises(UsageError, match=rf"{key}={held[key]}.*{key}={value}.*asked for"):
        MAKE[name](folder, **{key: value})
    version = held["version"]
    monkeypatch.setattr(MODULES[name], "VERSION", version + 1)
    with pytest.raises(UsageError, match=rf"version {version} with.*version {version + 1} with"):
        MAKE[name](folder)
    assert every_byte(folder) == before
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
