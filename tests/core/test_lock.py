"""One training per run folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from diptych.core.errors import StorageError, UsageError
from diptych.core.lock import LOCK, training_lock

HERE = socket.gethostname()
HOLD = """
import sys
from diptych.core.lock import training_lock
with training_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_it_lasts_as_long_as_its_block(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with training_lock(folder):
        assert json.loads((folder / LOCK).read_text()) == {"pid": os.getpid(), "host": HERE}
        with (
            pytest.raises(UsageError, match=f"is being trained by process {os.getpid()} "),
            training_lock(folder),
        ):
            pass
        assert (folder / LOCK).is_file()  # the one who was refused has not taken it away
    assert list(folder.iterdir()) == []
    with pytest.raises(ZeroDivisionError), training_lock(folder):
        raise ZeroDivisionError
    assert list(folder.iterdir()) == []


def test_another_process_is_refused_until_it_is_done(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        with pytest.raises(UsageError, match=f"process {process.pid} ") as caught, training_lock(tmp_path):
            pass
        assert str(tmp_path / LOCK) in caught.value.fix
        process.communicate("")
    with training_lock(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.kill()
        # Its end is seen and left there: it is still in the table of processes.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with training_lock(tmp_path):
            assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []
    # The same number again, after a restart: nobody here holds it.
    (tmp_path / LOCK).write_text(json.dumps({"pid": os.getpid(), "host": HERE}))
    with training_lock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "who"),
    [
        ('{"pid": 1, "host": "elsewhere"}', "process 1 of elsewhere"),
        ("", "a process that does not say which"),
        ("[]", "a process that does not say which"),
        ('{"pid": null, "host": "elsewhere"}', "a process that does not say which"),
    ],
)
def test_who_cannot_be_asked_may_be_there(tmp_path: Path, content: str, who: str) -> None:
    (tmp_path / LOCK).write_text(content)
    with pytest.raises(UsageError, match=f"is being trained by {who}"), training_lock(tmp_path):
        pass
    assert (tmp_path / LOCK).read_text() == content


def test_a_lock_made_while_a_dead_one_was_cleared_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two find the same dead lock, and the other has been quicker."""
    file = tmp_path / LOCK
    dead = json.dumps({"pid": 2**22 + 1, "host": HERE})
    quicker = json.dumps({"pid": 1, "host": "elsewhere"})
    file.write_text(dead)
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        if self == file and self.read_text() == dead:
            self.write_text(quicker)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(UsageError, match="process 1 of elsewhere"), training_lock(tmp_path):
        pass
    assert [one.name for one in tmp_path.iterdir()] == [LOCK]
    assert file.read_text() == quicker


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    for folder in (tmp_path / "run", tmp_path / "run" / "inside"):
        with pytest.raises(StorageError, match="cannot write"), training_lock(folder):
            pass


def test_a_full_disk_leaves_no_lock(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(StorageError, match="cannot write"), training_lock(tmp_path):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
    with training_lock(tmp_path):
        assert (tmp_path / LOCK).is_file()
