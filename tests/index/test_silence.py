from __future__ import annotations

import os
import sys

import pytest

from diptych.index.rescored import silenced


def test_nothing_is_heard_inside_and_all_of_it_after(capfd):
    print("before")
    with silenced():
        print("python")
        print("python", file=sys.stderr)
        os.write(1, b"compiled")
        os.write(2, b"compiled")
    print("after")
    os.write(2, b"compiled after")
    assert capfd.readouterr() == ("before\nafter\n", "compiled after")


def test_errors_come_through_and_the_terminal_is_back(capfd):
    open_before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    with pytest.raises(ValueError, match="inside"), silenced():
        raise ValueError("inside")
    print("after")
    assert capfd.readouterr().out == "after\n"
    if open_before is not None:
        assert len(os.listdir("/proc/self/fd")) == open_before
