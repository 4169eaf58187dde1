from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import StorageError
from diptych.encoders.targets import TargetModel, targets_of

from .test_contract import Counting

CAPTIONS = [f"{'a' * (1 + number % 5)}{chr(97 + number % 26)}{'z' * (number // 26)}" for number in range(60)]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.encoders.targets.store._BLOCK_CAPTIONS", 16)


def stored(model: TargetModel, captions: list[str], root: Path) -> np.ndarray:
    return targets_of(model, captions, root, batch_size=8)


def asked(model: Counting) -> int:
    return sum(len(batch) for batch in model.batches)


def test_rows_are_the_models_and_memory_mapped(tmp_path: Path) -> None:
    captions = [*CAPTIONS, CAPTIONS[3], CAPTIONS[0]]
    rows = stored(Counting(), captions, tmp_path)
    assert isinstance(rows, np.memmap)
    assert not rows.flags.writeable
    assert rows.dtype == np.float32
    assert np.array_equal(rows, Counting().encode(captions))


def test_what_is_there_is_not_computed_again(tmp_path: Path) -> None:
    model = Counting()
    first = stored(model, CAPTIONS[:40], tmp_path)
    assert asked(model) == 40
    assert np.array_equal(stored(model, CAPTIONS[:40], tmp_path), first)
    assert asked(model) == 40
    # Another set that shares captions, in another order: only its new ones.
    others = CAPTIONS[50:19:-1]
    rows = stored(model, others, tmp_path)
    assert asked(model) == 51
    assert np.array_equal(rows, Counting().encode(others))
    # A subset needs nothing; what was mapped before is as it was.
    stored(model, CAPTIONS[10:30], tmp_path)
    assert asked(model) == 51
    assert np.array_equal(first, Counting().encode(CAPTIONS[:40]))


@given(st.lists(st.lists(st.sampled_from(CAPTIONS), max_size=30), min_size=1, max_size=4))
def test_any_sequence_of_sets(tmp_path_factory: pytest.TempPathFactory, sets: list[list[str]]) -> None:
    root = tmp_path_factory.mktemp("store")
    model = Counting()
    for captions in sets:
        assert np.array_equal(stored(model, captions, root), Counting().encode(captions))
    assert asked(model) == len({caption for captions in sets for caption in captions})


def test_another_model_is_another_store(tmp_path: Path) -> None:
    stored(Counting(), CAPTIONS, tmp_path)
    other = Counting()
    other.fingerprint = "f" * 16  # type: ignore[misc]
    stored(other, CAPTIONS, tmp_path)
    assert asked(other) == len(set(CAPTIONS))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0123456789abcdef", "f" * 16]


def test_killed_half_way_it_loses_at_most_a_block(tmp_path: Path) -> None:
    class Dying(Counting):
        def _rows(self, texts: list[str]) -> np.ndarray:
            if len(self.batches) == 5:
                raise KeyboardInterrupt
            return super()._rows(texts)

    with pytest.raises(KeyboardInterrupt):
        stored(Dying(), CAPTIONS, tmp_path)
    # Five batches of eight were computed, two blocks of sixteen are whole.
    assert len(list(tmp_path.rglob("*.npz"))) == 2
    assert list(tmp_path.rglob("*.npy")) == []
    assert list(tmp_path.rglob("*.tmp")) == []
    model = Counting()
    rows = stored(model, CAPTIONS, tmp_path)
    assert asked(model) == 60 - 32
    assert np.array_equal(rows, Counting().encode(CAPTIONS))


def test_leftovers_of_a_kill_that_nothing_could_clean_up(tmp_path: Path) -> None:
    stored(Counting(), CAPTIONS, tmp_path)
    (block, *_) = tmp_path.rglob("*.npz")
    (whole,) = tmp_path.rglob("*.npy")
    # Half-written files under the names that are used while writing.
    (block.parent / f".{block.name}.99999.tmp").write_bytes(block.read_bytes()[:100])
    (whole.parent / f".{whole.name}.99999.tmp").write_bytes(whole.read_bytes()[:300])
    whole.unlink()
    model = Counting()
    assert np.array_equal(stored(model, CAPTIONS, tmp_path), Counting().encode(CAPTIONS))
    assert asked(model) == 0


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty"])
@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_damage_is_detected(tmp_path: Path, kind: str, damage: str) -> None:
    stored(Counting(), CAPTIONS, tmp_path)
    file = sorted(tmp_path.rglob(f"*.{kind}"))[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage != "flipped":
        content = content[: len(content) // 2] if damage == "truncated" else bytearray()
    file.write_bytes(content)
    captions = CAPTIONS if kind == "npy" else CAPTIONS[::-1]
    with pytest.raises(StorageError, match=rf"{file.name}.*delete {file.name}"):
        stored(Counting(), captions, tmp_path)
    file.unlink()
    assert np.array_equal(stored(Counting(), captions, tmp_path), Counting().encode(captions))


def test_a_block_of_another_width(tmp_path: Path) -> None:
    stored(Counting(), CAPTIONS, tmp_path)
    file = next(file for file in tmp_path.rglob("*.npz") if len(np.load(file)["texts"]) == 16)
    with np.load(file, allow_pickle=False) as block:
        texts, rows = block["texts"], block["rows"]
    np.savez(file, texts=texts, rows=rows[:, :5])
    with pytest.raises(StorageError, match=r"rows of shape \(16, 5\) for 16 items"):
        stored(Counting(), CAPTIONS[::-1], tmp_path)


def test_captions_without_a_target_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        rows = stored(Counting(), ["dog", "123", "", "cat"], tmp_path)
        assert rows.any(axis=1).tolist() == [True, False, False, True]
    assert "2 of 4 captions have no target" in caplog.text


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        with pytest.raises(StorageError, match="cannot write"):
            stored(Counting(), CAPTIONS, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert np.array_equal(stored(Counting(), CAPTIONS, tmp_path), Counting().encode(CAPTIONS))
