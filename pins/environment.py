"""The processes that pins run in, so that numbers depend on the code and not on the machine.

The arithmetic of a matrix product depends on the instruction set and the number of threads; every library that
chooses by itself is told AVX2 and one thread.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

FIXED = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "MKL_CBWR": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "FAISS_OPT_LEVEL": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "NUMBA_CPU_NAME": "haswell",
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "200",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "CUDA_VISIBLE_DEVICES": "",
}
_LIBRARIES = (
    "torch",
    "timm",
    "numpy",
    "scipy",
    "scikit-learn",
    "pillow",
    "duckdb",
    "faiss-cpu",
    "numba",
    "bm25s",
    "pyseismic-lsr",
    "pyterrier_pisa",
)
_ROOT = Path(__file__).resolve().parent.parent


def platform_facts() -> dict[str, str]:
    """What last bits depend on besides the code: the architecture, its maker, its cache and the versions of libraries.

    MKL keeps to ``MKL_CBWR`` on processors of Intel's alone, and OpenBLAS sizes the blocks of its products, in whose
    order they are added up, by the second-level cache: of 2 MB or less.
    """
    processor = Path("/proc/cpuinfo")
    maker = re.search(r"vendor_id\s*:\s*(\w+)", processor.read_text()) if processor.is_file() else None
    facts = {"machine": platform.machine(), "maker": maker[1] if maker else "unknown"}
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    size = int(cache.read_text().strip().removesuffix("K")) if cache.is_file() else 0
    facts["cache"] = "2 MB or more" if size >= 2048 else "less"
    for name in _LIBRARIES:
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts


Measured = dict[str, Any]
"""``{"values": …, "cpu_seconds": …}``, or ``{"error": …}``."""


def run_pins(
    names: Sequence[str], jobs: int = 1, studies: Path | None = None
) -> Iterator[tuple[str, Measured]]:
    """Measure pins in processes with the fixed environment, and yield what each gave when its process is done.

    The studies of one paper share trainings, so they share a process; all that is no study shares another.

    Args:
        jobs: how many processes at once; numbers do not depend on it.
        studies: a folder of finished studies to read instead of running them.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        first, second = name.split(".")[:2]
        groups.setdefault(second if first == "study" and second != "complete" else "", []).append(name)
    with tempfile.TemporaryDirectory(prefix="pins-") as folder, ThreadPoolExecutor(jobs) as pool:
        work = [
            pool.submit(_run_group, Path(folder) / (paper or "rest"), given, studies)
            for paper, given in groups.items()
        ]
        for done in as_completed(work):
            yield from done.result().items()


def _run_group(folder: Path, names: Sequence[str], studies: Path | None) -> dict[str, Measured]:
    folder.mkdir()
    target = folder / "measured.json"
    done = subprocess.run(
        [sys.executable, "-m", "pins.worker", str(target), str(studies.resolve() if studies else ""), *names],
        env=environment(folder.parent),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    measured: dict[str, Measured] = json.loads(target.read_text()) if target.is_file() else {}
    ended = {"error": f"the process ended with code {done.returncode}:\n{done.stdout[-4000:]}"}
    return {name: measured.get(name, ended) for name in names}


def environment(folder: Path) -> dict[str, str]:
    """The fixed environment; the package is found where this process finds it."""
    import diptych

    source = Path(str(diptych.__file__)).resolve().parent.parent
    path = os.pathsep.join([str(source), str(_ROOT)])
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "DIPTYCH_CACHE": str(folder / "cache" / "diptych")}
    return {**os.environ, **FIXED, **cache, "PYTHONPATH": path}
