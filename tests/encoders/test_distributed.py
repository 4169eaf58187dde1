from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection

from .shades import Shades


class Machines:
    """What a Fabric of several processes does, with threads."""

    def __init__(self, size: int) -> None:
        self.world_size = size
        self.barrier = threading.Barrier(size, timeout=60)
        self.said: Any = None

    def member(self, rank: int) -> Any:
        machines = self

        class Member:
            global_rank, world_size = rank, machines.world_size

            def barrier(self) -> None:
                machines.barrier.wait()

            def broadcast(self, value: Any) -> Any:
                if rank == 0:
                    machines.said = value
                machines.barrier.wait()
                said = machines.said
                machines.barrier.wait()
                return said

        return Member()


def together(size: int, call: Any) -> list[Any]:
    """What ``call(fabric, rank)`` gives in each of ``size`` threads."""
    machines = Machines(size)
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(call, machines.member(rank), rank) for rank in range(size)]
        return [future.exception() or future.result() for future in futures]


@pytest.fixture
def collection(scenes_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 3)
    monkeypatch.setattr("diptych.encoders.encode._TEXT_BLOCK", 16)
    return read_collection(scenes_folder).split("val")


@pytest.mark.parametrize("size", [2, 7])
def test_each_encodes_its_part_and_the_rows_are_those_of_one(
    collection: Collection, tmp_path: Path, size: int
) -> None:
    whole = encode_collection(Shades(), collection, tmp_path / "one")
    encoders = [Shades() for _ in range(size)]
    found = together(
        size,
        lambda fabric, rank: encode_collection(encoders[rank], collection, tmp_path / "e", fabric=fabric),
    )
    for encoded in found:
        assert isinstance(encoded, EncodedCollection), encoded
        assert np.array_equal(encoded.images.rows, whole.images.rows)
        assert np.array_equal(encoded.texts.rows, whole.texts.rows)
        assert encoded.about == whole.about
    assert [sum(seen) for seen in zip(*(encoder.seen for encoder in encoders), strict=True)] == [16, 80]
    assert max(encoder.seen[0] for encoder in encoders) <= 3 * -(-6 // size)
    again = together(
        size,
        lambda fabric, rank: encode_collection(encoders[rank], collection, tmp_path / "e", fabric=fabric),
    )
    assert all(isinstance(encoded, EncodedCollection) for encoded in again)
    assert sum(encoder.seen[0] for encoder in encoders) == 16


def test_where_one_is_asked_to_stop_all_say_so_and_others_go_on(
    collection: Collection, tmp_path: Path
) -> None:
    encoders = [Shades(), Shades()]

    def encode(fabric: Any, rank: int) -> EncodedCollection:
        with stop_when(lambda: rank == 1 and encoders[1].has_begun()):
            return encode_collection(encoders[rank], collection, tmp_path / "e", fabric=fabric)

    found = together(2, encode)
    # The first did its nine pictures and three of five blocks of captions, the second one block of pictures.
    assert [str(error) for error in found] == [str(found[0])] * 2
    assert isinstance(found[0], Interrupted)
    assert "12 of 16 images and 48 of 80 captions are embedded and kept" in found[0].message
    assert not (tmp_path / "e" / "embedded_collection.json").exists()
    last = Shades()
    encode_collection(last, collection, tmp_path / "e")
    assert last.seen == [4, 32]


def test_a_crew_has_no_processes_of_its_own(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 processes for each of 3"):
        encode_collection(Shades(), collection, tmp_path, processes=2, fabric=Machines(3).member(0))
