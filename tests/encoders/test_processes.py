from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused

from diptych.core.context import report_to
from diptych.core.errors import ImageError, UsageError
from diptych.core.processes import in_processes
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.regions import RegionSource
from diptych.encoders.encode import device_for, encode_collection
from diptych.encoders.two_tower import TwoTowerEncoder

from .shades import Bars
from .test_encode import region_encoder


class Features(RegionSource):
    """Features of which one may be damaged, with the names of sound ones."""

    def __init__(self, count: int, bad: int | None = None) -> None:
        values = np.random.default_rng(0).normal(size=(count, 2, 3)).astype(np.float32)
        if bad is not None:
            values[bad, 1, 2] = np.nan
        super().__init__([values], "r.npy")

    def content(self, row: int) -> str:
        return str(row)


def featured(collection: Collection, bad: int | None = None) -> Collection:
    count = collection.n_images
    return replace(collection, source=Features(count, bad), source_rows=np.arange(count))


@pytest.fixture
def collection(scenes_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 5)
    monkeypatch.setattr("diptych.encoders.encode._TEXT_BLOCK", 30)
    return featured(read_collection(scenes_folder).split("train"))


def test_two_processes_write_what_one_does_and_one_that_fails_ends_both(
    collection: Collection, tmp_path: Path
) -> None:
    whole = encode_collection(region_encoder(), collection, tmp_path / "one")
    folder = tmp_path / "two"
    # The damaged picture is the second process's, the last but three.
    damaged, name = featured(collection, bad=44), collection.image_ids[44]
    with pytest.raises(ImageError, match=rf"image {name}: feature 2 of region 1 is nan") as caught:
        encode_collection(region_encoder(), damaged, folder, processes=2, accelerator="cpu")
    assert caught.value.fix == "extract it again"
    assert sorted(file.name for file in folder.iterdir()) == ["images.unfinished", "texts.unfinished"]

    bars = Bars()
    with report_to(bars):
        found = encode_collection(region_encoder(), collection, folder, processes=2, accelerator="cpu")
    assert np.array_equal(found.images.rows, whole.images.rows)
    assert np.array_equal(found.texts.rows, whole.texts.rows)
    assert found.about == whole.about
    assert bars.told == [
        ["reading pictures", 48, 48],
        ["embedding images", 48, 48],
        ["embedding captions", 240, 240],
    ]
    assert {file.name for file in folder.iterdir()} == {file.name for file in (tmp_path / "one").iterdir()}


def test_a_collection_that_cannot_be_handed_on_is_named(collection: Collection, tmp_path: Path) -> None:
    class Locked:
        def __init__(self, source: Any) -> None:
            self.lock, self.source = threading.Lock(), source

        def read(self, row: int) -> Any:
            return self.source.read(row)

        def content(self, row: int) -> str:
            return str(row)

    pictures = replace(collection, source=Locked(collection.source))

    class Pictures(TwoTowerEncoder):
        takes = "pictures"  # type: ignore[assignment]

    of_pictures = Pictures(region_encoder().model, region_encoder().source)
    with pytest.raises(UsageError, match="the collection cannot be sent to other processes") as caught:
        encode_collection(of_pictures, pictures, tmp_path / "e", processes=2, accelerator="cpu")
    assert caught.value.fix == "use one process"


def test_devices_are_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert [device_for(name, 8) for name in ("auto", "cpu")] == ["cpu", "cpu"]
    refused(UsageError, "8 processes for 0 GPUs", device_for, "cuda", 8)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [device_for(name, 4) for name in ("auto", "cuda", "gpu", "cpu")] == ["cuda", "cuda", "cuda", "cpu"]
    refused(UsageError, "5 processes for 4 GPUs", device_for, "auto", 5)
    refused(UsageError, "accelerator 'tpu' with 2 processes", device_for, "tpu", 2)


def test_the_encoder_that_processes_load_is_there_until_they_have_ended(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watched(*given: Any, **how: Any) -> Iterator[int]:
        yield from in_processes(*given, **how)
        seen.extend(tmp_path.rglob("encoder"))

    monkeypatch.setattr("diptych.encoders.encode.in_processes", watched)
    encode_collection(region_encoder(), collection, tmp_path / "two", processes=2, accelerator="cpu")
    assert len(seen) == 1
