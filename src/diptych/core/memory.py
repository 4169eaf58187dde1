"""Keeping freed memory instead of handing it back after every layer.

On Linux the C library gives each large block back to the system when it is freed, so that a network
on the CPU spends up to two thirds of its time having the same pages zeroed again and again. One call
at the start of a program makes it two to three times faster; the price is that the process keeps up
to 2 GB it no longer needs.
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_TWO_GB = 2**31 - 1
_kept = False


def keep_freed_memory() -> bool:
    """Tell glibc's allocator to keep large blocks; gives whether it agreed.

    A setting of the whole process, so the command line makes it and the library does not. Elsewhere
    than on Linux with glibc nothing happens.
    """
    global _kept
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    _kept = bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, _TWO_GB))
    return _kept


def keeps_freed_memory() -> bool:
    """Whether :func:`keep_freed_memory` was asked and agreed to: processes that this one starts do likewise."""
    return _kept
