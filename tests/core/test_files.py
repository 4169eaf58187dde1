from __future__ import annotations

import csv
import re
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import StorageError
from diptych.core.files import (
    atomic_folder,
    create_array,
    recover_folder,
    safe_name,
    write_bytes,
    write_csv,
    write_json,
)
from diptych.core.locking import exclusive_folder, taking_turns
from diptych.core.reading import read_json


@pytest.fixture
def small_files_only() -> Iterator[None]:
    """The operating system refuses to let a file grow beyond 4,096 bytes: a real write error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, small_files_only: None) -> None:
    target = tmp_path / "value.json"
    write_json(target, {"old": True})
    assert str(target) in refused(StorageError, ".", write_bytes, target, b"x" * 10_000).message
    assert read_json(target) == {"old": True}
    assert [path.name for path in tmp_path.iterdir()] == ["value.json"]


def test_a_kill_between_the_two_renames_is_put_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".folder.old").mkdir()
    (tmp_path / ".folder.old" / "a").write_text("whole")
    (tmp_path / ".folder.abc.tmp").mkdir()
    recover_folder(tmp_path / "folder")
    assert (tmp_path / "folder" / "a").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    monkeypatch.chdir(tmp_path / "folder")
    recover_folder(".")  # a folder is known by its place, however it is named
    with atomic_folder("."):
        assert len(list(tmp_path.iterdir())) == 2
    assert list((tmp_path / "folder").iterdir()) == []


def test_arrays_reserve_their_space_and_json_has_no_nan(tmp_path: Path, small_files_only: None) -> None:
    refused(ValueError, "not JSON compliant", write_json, tmp_path / "x.json", float("nan"))
    assert list(tmp_path.iterdir()) == []
    rows = create_array(tmp_path / "small.npy", "float32", (4, 4))
    rows[:] = 1
    assert np.load(tmp_path / "small.npy").sum() == 16
    refused(OSError, "File too large", create_array, tmp_path / "large.npy", "float32", (1000, 1000))


def test_two_that_write_the_same_folder_leave_each_other_alone(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    (tmp_path / ".out.killed.tmp").mkdir()
    with atomic_folder(tmp_path / "out") as first:
        (first / "a").write_text("first")
        with atomic_folder(tmp_path / "out") as second:
            (second / "a").write_text("second")
        assert (tmp_path / "out" / "a").read_text() == "second"
        assert (first / "a").exists()
    assert (tmp_path / "out" / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_another_process_took_for_a_leftover_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its creation and its lock no other process can know that it is in use."""
    make, made = tempfile.mkdtemp, []

    def removed_at_first(**options: Any) -> str:
        made.append(make(**options))
        if len(made) == 1:
            recover_folder(tmp_path / "target")
            assert not Path(made[0]).exists()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", removed_at_first)
    with atomic_folder(tmp_path / "target") as folder:
        recover_folder(tmp_path / "target")  # it is locked now
        (folder / "file").write_text("whole")
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert (tmp_path / "target" / "file").read_text() == "whole"


def test_one_at_a_time_is_in_the_block(tmp_path: Path) -> None:
    """The lock is of the open file: threads of one process wait for each other as processes do."""
    pytest.importorskip("fcntl")
    folder, inside, most = tmp_path / "cache" / "key", 0, 0

    def enter(_: int) -> None:
        nonlocal inside, most
        with taking_turns(folder):
            inside += 1
            most = max(most, inside)
            time.sleep(0.002)
            inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(24)))
    assert (most, inside) == (1, 0)
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError, match=r"cannot write .*\.key\.lock") as caught,
        taking_turns(tmp_path / "file" / "key"),
    ):
        pytest.fail("the block must not run")
    assert "DIPTYCH_CACHE" in caught.value.fix


@settings(max_examples=100)
@given(st.text(max_size=150, alphabet=st.characters()))
@example("..")
@example("../../X")
@example("C:\\x")
@example("half \ud800")
def test_any_name_is_one_short_part_of_a_path(text: str) -> None:
    name = safe_name(text)
    assert re.fullmatch(r"[A-Za-z0-9._%-]{1,100}", name)
    assert name not in (".", "..")
    if text != name:
        assert safe_name(name) != name  # nothing else has its name
    for safe in ("coco-test", "Flickr30k", "a.b_c-9", ".hidden", "x" * 100):
        assert safe_name(safe) == safe


def test_a_table_runs_nothing_in_a_spreadsheet_and_its_numbers_are_numbers(tmp_path: Path) -> None:
    formulas = ["=cmd|'/C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]
    plain = ["", "a=b", "-1.5", "+3", "-1e-05", "-inf", "x, y", 'a "b"', "é"]
    write_csv(
        tmp_path / "a.csv", ("=id", "n"), [*((text, -7) for text in formulas), *((t, -0.5) for t in plain)]
    )
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as handle:
        head, *rows = csv.reader(handle)
    assert head == ["'=id", "n"]
    assert rows == [
        *(["'" + text.replace("\r", "\n"), "-7"] for text in formulas),
        *([text, "-0.5"] for text in plain),
    ]


def test_what_a_killed_save_of_tensors_leaves_is_removed_at_the_next_use(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in (".tmpA1b2C3", "deep/.tmpZZZZZZ", ".weights.safetensors.12.tmp"):
        (tmp_path / name).write_bytes(b"half")
    for name in (".tmpnote", "a.tmpA1b2C3", ".hidden"):
        (tmp_path / name).write_bytes(b"kept")
    with exclusive_folder(tmp_path):
        pass
    assert {path.name for path in tmp_path.rglob("*")} == {"deep", ".tmpnote", "a.tmpA1b2C3", ".hidden"}
