"""One process at a time in a folder, and what a killed one leaves there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from diptych.core.alone import alone_in
from diptych.core.errors import StorageError

HOLD = """
import sys
from diptych.core.alone import alone_in
with alone_in(sys.argv[1]):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_kept_out_until_it_has_ended_or_was_killed(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    folder = tmp_path / "new" / "folder"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(StorageError, match="another process is at work in"), alone_in(folder):
            pass
        other.kill()
    with alone_in(folder):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "new", folder]


def test_it_may_be_renamed_and_opened_again(tmp_path: Path) -> None:
    with alone_in(tmp_path / "work"):
        (tmp_path / "work").rename(tmp_path / "done")
        with alone_in(tmp_path / "work"):
            pass
    with alone_in(tmp_path / "done"):
        pass


def test_only_what_was_left_half_written_is_removed(tmp_path: Path) -> None:
    for name in (
        ".marker.json.17.tmp",
        "deep/.cell.npz.18.tmp",
        "deep/.cell.x7.tmp/file",
        "deep/cell.tmp",
        ".own",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("half")
    with alone_in(tmp_path):
        left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".own", "deep/cell.tmp"]


def test_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"), alone_in(tmp_path / "file" / "folder"):
        pass
