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
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from diptych.core.errors import MismatchError, UsageError
from diptych.core.memory import keep_freed_memory, keeps_freed_memory
from diptych.data.collection import Collection
from diptych.data.loading import default_workers
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encoding import encode_blocks
from diptych.encoders.process_group import ProcessGroup
from diptych.encoders.row_blocks import RowBlocks, RowPlan
from diptych.encoders.sides import Side

__all__ = ["encode_in_processes"]

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
    """Encode what is missing of ``sides``, or as much as there is when asked to stop.

    Args:
        encoder: is saved and loaded by each process.
        collection: what is encoded; handed to each process.
        sides: where rows go.
        processes: how many.
        accelerator: ``cpu``, ``cuda`` or ``auto``.
        should_stop: asked all the time; the processes then stop at the end of their blocks.

    Raises:
        UsageError: more processes than graphics cards, another accelerator, or a collection that cannot be
            handed on.
        DiptychError: that of the first process that failed; the others are ended.
    """
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
    """``"cpu"`` or ``"cuda"``.

    Raises:
        UsageError: another accelerator, or more processes than graphics cards.
    """
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
