"""The processes that encode one collection together, on one machine or several."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

from diptych.core.errors import UsageError

T = TypeVar("T")

_MACHINE_RANKS = ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID")
"""Variables of which torchrun, Lightning and SLURM set one each."""


class DistributedContext:
    """A launched Fabric's processes, which make the same calls in the same order; without one, this process alone."""

    def __init__(self, fabric: Any = None) -> None:
        self._fabric = fabric
        self.rank = 0 if fabric is None else int(fabric.global_rank)
        self.world_size = 1 if fabric is None else int(fabric.world_size)

    @property
    def is_main_process(self) -> bool:
        return self.rank == 0

    def broadcast(self, make: Callable[[], T]) -> T:
        """Return what the main process makes, in all of them."""
        made = make() if self.is_main_process else None
        if self.world_size > 1:
            made = self._fabric.broadcast(made)
        return made  # type: ignore[return-value]

    def barrier(self) -> None:
        """Wait until all processes are here."""
        if self.world_size > 1:
            self._fabric.barrier()


def launched_fabric(nodes: int, processes: int, accelerator: str) -> Any:
    """Return the Fabric of a process that torchrun or srun started on one of several machines."""
    from lightning_fabric import Fabric

    _check_accelerator(accelerator, f"on {nodes} machines")
    if not any(name in os.environ for name in _MACHINE_RANKS):
        raise UsageError(
            f"{nodes} machines, and nothing says which of them this is",
            "start it with torchrun or srun, or set NODE_RANK, MASTER_ADDR and MASTER_PORT on each",
        )
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    fabric = Fabric(accelerator=accelerator, devices=processes, num_nodes=nodes, strategy="ddp")
    fabric.launch()
    return fabric


def _check_accelerator(accelerator: str, where: str) -> None:
    if accelerator not in ("auto", "cpu", "cuda", "gpu"):
        raise UsageError(f"accelerator {accelerator!r} {where}", "use cpu, cuda or auto")


def device_for(accelerator: str, processes: int) -> str:
    """Return ``"cpu"`` or ``"cuda"`` for several processes of this machine, one GPU each."""
    import torch

    _check_accelerator(accelerator, f"with {processes} processes")
    gpus = torch.cuda.device_count()
    if accelerator == "cpu" or (accelerator == "auto" and not gpus):
        return "cpu"
    if processes > gpus:
        raise UsageError(f"{processes} processes for {gpus} GPUs", "one process per GPU, or accelerator cpu")
    return "cuda"
