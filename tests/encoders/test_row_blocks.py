from __future__ import annotations

import dataclasses
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError, StorageError
from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, embeddings_header
from diptych.encoders.row_blocks import RowBlocks, RowPlan

PLAN = RowPlan("image", "e", "d", count=10, width=3, block=4, similarity="cosine")
ROWS = np.arange(30, dtype=np.float32).reshape(10, 3)
HEADER = embeddings_header("image", "e", "d", {"split": "test"}, "cosine")
IDS = list("abcdefghij")


@given(st.integers(0, 40), st.integers(1, 9), st.sets(st.integers(0, 39)))
def test_blocks_are_the_rows_in_order(count: int, block: int, some: set[int]) -> None:
    plan = dataclasses.replace(PLAN, count=count, block=block)
    assert [row for number in range(plan.blocks) for row in plan.rows_of(number)] == list(range(count))
    chosen = np.array(sorted(number for number in some if number < plan.blocks), dtype=np.int64)
    assert plan.rows_in(chosen) == sum(len(plan.rows_of(number)) for number in chosen.tolist())


def test_blocks_written_in_any_order_become_embeddings(tmp_path: Path) -> None:
    target = tmp_path / "e" / "images"
    blocks = RowBlocks.begin(target, PLAN)
    assert not target.exists()
    with pytest.raises(DataError, match="3 of 3 blocks of image rows are missing"):
        blocks.finish(target, IDS, HEADER)
    with blocks as writer:
        for number in (2, 0):
            writer.write(number, ROWS[number * 4 : number * 4 + 4])
    again = RowBlocks.begin(target, PLAN)
    assert (again.missing().tolist(), again.done()) == ([1], 6)
    with again as writer:
        writer.write(1, ROWS[4:8])
    again.finish(target, IDS, HEADER)
    opened = Embeddings.open(target)
    assert np.array_equal(opened.rows, ROWS)
    assert (list(opened.ids), opened.about) == (IDS, {"split": "test"})
    assert sorted(file.name for file in target.parent.iterdir()) == ["images"]
    assert sorted(file.name for file in target.iterdir()) == [
        "embeddings.json",
        "ids.ends",
        "ids.utf8",
        "rows.npy",
    ]


def test_what_two_write_at_once_is_of_both(tmp_path: Path) -> None:
    blocks = RowBlocks.begin(tmp_path / "images", PLAN)
    with RowBlocks(blocks.folder, PLAN) as one, RowBlocks(blocks.folder, PLAN) as other:
        one.write(0, ROWS[:4])
        other.write(2, ROWS[8:])
        assert blocks.done() == 0
        other.record()
        assert blocks.done() == 2
        one.write(1, ROWS[4:8])
    blocks.finish(tmp_path / "images", IDS, HEADER)
    assert np.array_equal(Embeddings.open(tmp_path / "images").rows, ROWS)


@pytest.mark.parametrize(
    "change", [{"encoder": "f"}, {"data": "e"}, {"count": 9}, {"width": 4}, {"block": 5}, {"kind": "text"}]
)
def test_another_plan_begins_anew(tmp_path: Path, change: dict[str, object]) -> None:
    with RowBlocks.begin(tmp_path / "images", PLAN) as writer:
        writer.write(0, ROWS[:4])
    assert RowBlocks.begin(tmp_path / "images", PLAN).done() == 4
    assert RowBlocks.begin(tmp_path / "images", dataclasses.replace(PLAN, **change)).done() == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("file", ["plan.json", "rows.npy", "finished.u1"])
@pytest.mark.parametrize("how", ["gone", "short", "empty"])
def test_half_a_folder_begins_anew(tmp_path: Path, file: str, how: str) -> None:
    with RowBlocks.begin(tmp_path / "images", PLAN) as writer:
        writer.write(0, ROWS[:4])
    path = writer.folder / file
    content = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(content[: len(content) // 2 if how == "short" else 0])
    assert RowBlocks.begin(tmp_path / "images", PLAN).missing().tolist() == [0, 1, 2]


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    with RowBlocks.begin(tmp_path / "images", PLAN) as writer:
        for number, rows in ((0, ROWS[:3]), (2, ROWS[:4]), (0, ROWS[:4, :2])):
            with pytest.raises(DataError, match=r"image rows of shape .* came, \(\d, 3\) expected"):
                writer.write(number, rows)
    assert RowBlocks.begin(tmp_path / "images", PLAN).done() == 0


def test_no_rows_at_all_are_embeddings_too(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, count=0)
    blocks = RowBlocks.begin(tmp_path / "images", plan)
    with blocks:
        assert blocks.missing().tolist() == []
    blocks.finish(tmp_path / "images", [], HEADER)
    assert Embeddings.open(tmp_path / "images").rows.shape == (0, 3)


def test_an_older_version_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    Embeddings(IDS, ROWS, "old", "d", "image", {}).save(tmp_path / "images")
    blocks = RowBlocks.begin(tmp_path / "images", PLAN)
    assert Embeddings.open(tmp_path / "images").encoder == "old"
    with blocks as writer:
        for number in range(3):
            writer.write(number, -ROWS[number * 4 : number * 4 + 4])
    blocks.finish(tmp_path / "images", IDS, HEADER)
    assert np.array_equal(Embeddings.open(tmp_path / "images").rows, -ROWS)


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*images.unfinished: .* too large") as caught:
            RowBlocks.begin(tmp_path / "images", PLAN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "the same command goes on" in caught.value.fix
    assert RowBlocks.begin(tmp_path / "images", PLAN).done() == 0


def test_a_plan_of_another_format_begins_anew(tmp_path: Path) -> None:
    with RowBlocks.begin(tmp_path / "images", PLAN) as writer:
        writer.write(0, ROWS[:4])
    write_json(writer.folder / "plan.json", {**dataclasses.asdict(PLAN), "format": 99})
    assert RowBlocks.begin(tmp_path / "images", PLAN).done() == 0
