from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
import resource, sys
import numpy as np
if "keep" in sys.argv:
    from diptych.core.processes import keep_freed_memory, keeps_freed_memory
    assert not keeps_freed_memory()
    assert keep_freed_memory()
    assert keeps_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(10_000_000)
before = faults()
for _ in range(10):
    np.ones(10_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc hands memory back block by block")
def test_pages_are_not_asked_for_again() -> None:
    def faults(*arguments: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    # 80 MB in 4 kB pages is 19,531 faults a time; huge pages make it fewer, keeping them makes it none.
    assert faults("keep") * 5 < faults()
