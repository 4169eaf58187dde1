"""Encoding by several processes of this machine, each with an encoder of its own.

Every process takes blocks of pictures and captions that lie together and writes them into the same files;
what is finished is read from their journal, by the bars here as by whoever goes on. Lightning Fabric
gives each its device: the processor's cores in equal parts, or one graphics card.

They are started by :mod:`process_group` and not by Fabric's launchers, of which one runs the whole command
again and the other does not survive Ctrl-C: an error has to come back as what it is, and a request to stop
has to be answered at the end of a block. For several machines see :mod:`crew`.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from diptych.core import errors
from diptych.core.errors import DiptychError, MismatchError, UsageError
from diptych.core.memory import keep_freed_memory, keeps_freed_memory
from diptych.data.collection import Collection
from diptych.data.loading import default_workers
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encoding import encode_blocks
from diptych.encoders.row_blocks import RowBlocks, RowPlan
from diptych.encoders.sides import Side

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess


# Processes that are started, watched and ended together.
#
# The first error of one ends all and is raised here as what it is. A request to stop is passed on and
# answered by each when it comes to it; Ctrl-C reaches all of them at once, so they do not listen to it
# themselves. None is left when this process ends, even if it is killed.

Work: TypeAlias = Callable[[int, Any, Callable[[], bool]], None]

_LOOK_SECONDS = 0.2


class ProcessGroup:
    """Processes that do one job.

    Args:
        work: (rank, job, should_stop), called in each process; one that can be imported.
    """

    def __init__(self, work: Work, job: Any, count: int, should_stop: Callable[[], bool]) -> None:
        context = get_context("spawn")
        self._should_stop = should_stop
        self._stop = context.Event()
        self._failures = context.SimpleQueue()
        self._processes = [
            context.Process(
                target=_worked, args=(work, rank, job, os.getpid(), self._stop, self._failures), daemon=True
            )
            for rank in range(count)
        ]

    def run(self, sides: Sequence[Side]) -> None:
        """Start them, show how far ``sides`` are, and end together."""
        try:
            with _deaf_to_interrupts():
                for process in self._processes:
                    _start(process)
            for side in sides:
                self._watch(side)
            while self._going_on():
                pass
            self._raise_failure()
        finally:
            for process in self._processes:
                if process.is_alive():
                    process.terminate()
                if process.pid is not None:
                    process.join()

    def _watch(self, side: Side) -> None:
        before, going = side.rows.done(), True
        with side.bar(before) as bar:
            while going and before < side.rows.plan.count:
                going = self._going_on()
                done = side.rows.done()
                if done > before:
                    bar.advance(done - before)
                before = done

    def _going_on(self) -> bool:
        """Wait a little; whether some process still works and none has failed."""
        if self._should_stop():
            self._stop.set()
        working = [process.sentinel for process in self._processes if process.is_alive()]
        if working:
            wait(working, timeout=_LOOK_SECONDS)
        return not self._failed() and any(process.is_alive() for process in self._processes)

    def _failed(self) -> list[int]:
        return [rank for rank, process in enumerate(self._processes) if process.exitcode not in (None, 0)]

    def _raise_failure(self) -> None:
        failed = self._failed()
        if not failed:
            return
        if not self._failures.empty():
            raise _error_of(*self._failures.get())
        code = self._processes[failed[0]].exitcode or 0
        which = f"process {failed[0] + 1} of {len(self._processes)}"
        if code < 0:
            raise DiptychError(
                f"{which} was ended by signal {-code}",
                "if memory ran out, use fewer processes; the same command goes on",
            )
        raise DiptychError(
            f"{which} failed; what it said stands above",
            'in a script, call this below if __name__ == "__main__":',
        )


def _worked(work: Work, rank: int, job: Any, parent: int, stop: Any, failures: Any) -> None:
    """One process, from its start to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work(rank, job, lambda: bool(stop.is_set()) or os.getppid() != parent)
    except DiptychError as error:
        failures.put((type(error).__name__, error.message, error.fix))
        sys.exit(1)


def _start(process: SpawnProcess) -> None:
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"the collection cannot be handed to other processes: {error}", "use one process"
        ) from error


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started inside ignore Ctrl-C from their first moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _error_of(name: str, message: str, fix: str) -> DiptychError:
    """The error of another process, of its own class."""
    kind: type[DiptychError] = getattr(errors, name, DiptychError)
    error = kind.__new__(kind)
    DiptychError.__init__(error, message, fix)
    return error


_ACCELERATORS = ("auto", "cpu", "cuda", "gpu")


@dataclass(frozen=True)
class _Job:
    """What every process is told.

    Attributes:
        encoder: the folder it is saved in.
        fingerprint: what it has to be once it is loaded.
        collection: what is encoded.
        shares: per half its folder, plan, and the blocks of each process.
        device: ``"cpu"`` or ``"cuda"``.
        threads: per process.
        keep_memory: see :mod:`diptych.core.memory`.
    """

    encoder: Path
    fingerprint: str
    collection: Collection
    shares: list[tuple[Path, RowPlan, list[np.ndarray]]]
    device: str
    threads: int
    keep_memory: bool


def encode_in_processes(
    encoder: DualEncoder,
    collection: Collection,
    sides: Sequence[Side],
    processes: int,
    accelerator: str = "auto",
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Encode what is missing of ``sides``, or as much as there is when asked to stop."""
    device = _device(accelerator, processes)
    missing = [side.rows.missing() for side in sides]
    processes = min(processes, max(map(len, missing), default=0))
    if not processes:
        return
    folder = sides[0].target.parent
    # Under a name that is cleared away when a killed run is gone on with.
    with tempfile.TemporaryDirectory(prefix=f".{sides[0].target.name}.", suffix=".tmp", dir=folder) as place:
        job = _Job(
            encoder=encoder.save(Path(place) / "encoder"),
            fingerprint=encoder.fingerprint,
            collection=replace(collection, records=None, caption_records=None),
            shares=[
                (side.rows.folder, side.rows.plan, np.array_split(blocks, processes))
                for side, blocks in zip(sides, missing, strict=True)
            ],
            device=device,
            threads=max(1, default_workers() // processes),
            keep_memory=keeps_freed_memory(),
        )
        ProcessGroup(_encode_share, job, processes, should_stop).run(sides)


def _encode_share(rank: int, job: _Job, should_stop: Callable[[], bool]) -> None:
    import torch
    from lightning_fabric import Fabric

    if job.keep_memory:
        keep_freed_memory()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(job.threads)
    fabric = Fabric(accelerator=job.device, devices=[rank] if job.device == "cuda" else 1)
    fabric.launch()
    encoder = DualEncoder.load(job.encoder, device=str(fabric.device))
    if encoder.fingerprint != job.fingerprint:
        raise MismatchError(
            f"the encoder was {job.fingerprint}, saved and loaded it is {encoder.fingerprint}",
            "its family does not save all that matters: use one process",
        )
    for folder, plan, blocks in job.shares:
        with RowBlocks(folder, plan) as rows:
            if not encode_blocks(
                encoder,
                job.collection,
                rows,
                blocks[rank].tolist(),
                should_stop=should_stop,
                threads=job.threads,
            ):
                return


def _device(accelerator: str, processes: int) -> str:
    """``"cpu"`` or ``"cuda"``."""
    import torch

    if accelerator not in _ACCELERATORS:
        raise UsageError(f"accelerator {accelerator!r} with {processes} processes", "use cpu, cuda or auto")
    cards = torch.cuda.device_count()
    if accelerator == "cpu" or (accelerator == "auto" and not cards):
        return "cpu"
    if processes > cards:
        raise UsageError(
            f"{processes} processes for {cards} graphics cards", "one process per card, or accelerator cpu"
        )
    return "cuda"
