"""Dying at every write: a shim counts the calls that change the disk and ends the process at the N-th."""

from __future__ import annotations

import builtins
import io
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CALLS = [
    "open",
    "write",
    "pwrite",
    "fsync",
    "rename",
    "replace",
    "unlink",
    "remove",
    "rmdir",
    "mkdir",
    "link",
]
_DIED, _DONE, _FAILED = 77, 0, 1


class _Counter:
    def __init__(self, last: int) -> None:
        self.last, self.calls = last, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self.last:
            os._exit(_DIED)


class _Counted(io.IOBase):
    """A file whose writes are counted, half of the fatal one being written."""

    def __init__(self, file: Any, count: _Counter) -> None:
        self._file, self._count = file, count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, content: Any) -> int:
        if self._count.calls + 1 == self._count.last:
            self._file.write(content[: len(content) // 2])
            self._file.flush()
        self._count()
        return int(self._file.write(content))

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()


def _counted(call: Callable[..., Any], count: _Counter) -> Callable[..., Any]:
    def counted(*args: Any, **options: Any) -> Any:
        count()
        return call(*args, **options)

    return counted


def _install(count: _Counter) -> None:
    for name in _CALLS:
        if name != "open" and hasattr(os, name):
            setattr(os, name, _counted(getattr(os, name), count))
    plain = builtins.open

    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+"):
            return plain(file, mode, *args, **options)
        count()
        handle = plain(file, mode, *args, **options)
        return _Counted(handle, count) if "b" in mode and "+" not in mode else handle

    builtins.open = opened  # type: ignore[assignment]
    io.open = opened  # type: ignore[assignment]


def in_a_process(act: Callable[[], None], die_at: int = 0) -> bool:
    """Run ``act`` in a fork that dies at its ``die_at``-th change of the disk; return whether it ended by itself."""
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            if die_at:
                _install(_Counter(die_at))
            act()
            code = _DONE
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (_DONE, _DIED), f"ended with {code} at call {die_at}"
    return code == _DONE


def crash_everywhere(
    begin: Callable[[Path], None],
    act: Callable[[Path], None],
    check: Callable[[Path], None],
    folder: Path,
    every: int = 1,
) -> int:
    """Let ``act(place)`` die at every call that changes the disk, or at every such one, and ``check(place)`` after;
    gives how many calls there are."""
    for point in range(min(every, 12), 10_000, every):  # the 12th is often a rename
        place = folder / str(point)
        place.mkdir()
        begin(place)
        ended = in_a_process(lambda place=place: act(place), point)  # type: ignore[misc]
        check(place)
        if ended:
            return point - 1
    raise AssertionError("no end")
