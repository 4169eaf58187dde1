"""The processes that encode one collection together, on one machine or several, as Lightning Fabric launched them.

They make the same calls in the same order. The first reads and decides, all encode, the first finishes;
between these they wait for each other. What one of them had done when it was interrupted is used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encoding import encode_blocks
from diptych.encoders.sides import Side, sides_of

T = TypeVar("T")

_ACCELERATORS = ("auto", "cpu", "cuda", "gpu")
_WHICH_MACHINE = ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID")
"""Variables of which torchrun, Lightning and SLURM set one each."""


def launched_fabric(nodes: int, processes: int, accelerator: str) -> Any:
    """This process's place among those of several machines."""
    from lightning_fabric import Fabric

    if accelerator not in _ACCELERATORS:
        raise UsageError(f"accelerator {accelerator!r} on {nodes} machines", "use cpu, cuda or auto")
    if not any(name in os.environ for name in _WHICH_MACHINE):
        raise UsageError(
            f"{nodes} machines, and nothing says which of them this is",
            "start it with torchrun or srun, or set NODE_RANK, MASTER_ADDR and MASTER_PORT on each",
        )
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    fabric = Fabric(accelerator=accelerator, devices=processes, num_nodes=nodes, strategy="ddp")
    fabric.launch()
    return fabric


class Crew:
    """A launched Fabric's processes; without one, this process alone.

    Attributes:
        rank: the place of this process, from 0.
        size: how many there are.
    """

    def __init__(self, fabric: Any = None) -> None:
        self._fabric = fabric
        self.rank = 0 if fabric is None else int(fabric.global_rank)
        self.size = 1 if fabric is None else int(fabric.world_size)

    @property
    def first(self) -> bool:
        """Whether this is the process that reads, decides and finishes."""
        return self.rank == 0

    def told(self, make: Callable[[], T]) -> T:
        """What the first process makes, known to all."""
        made = make() if self.first else None
        if self.size > 1:
            made = self._fabric.broadcast(made)
        return made  # type: ignore[return-value]

    def wait(self) -> None:
        """For all to come here."""
        if self.size > 1:
            self._fabric.barrier()


def encode_share(
    crew: Crew,
    encoder: DualEncoder,
    collection: Collection,
    folder: Path,
    about: dict[str, Any],
    should_stop: Callable[[], bool],
) -> list[Side]:
    """Encode this process's part of what is missing; back when all have, or have been asked to stop."""
    sides = sides_of(encoder, collection, folder, about) if crew.first else []
    crew.wait()
    if not crew.first:
        sides = sides_of(encoder, collection, folder, about)
    # Known to all before any of them writes.
    shares = [np.array_split(side.rows.missing(), crew.size)[crew.rank].tolist() for side in sides]
    crew.wait()
    for side, blocks in zip(sides, shares, strict=True):
        if not _encode(crew, encoder, collection, side, blocks, should_stop):
            break
    crew.wait()
    return sides


def _encode(
    crew: Crew,
    encoder: DualEncoder,
    collection: Collection,
    side: Side,
    blocks: list[int],
    should_stop: Callable[[], bool],
) -> bool:
    shown = side.rows.done()
    with side.bar(shown) as bar, side.rows as rows:

        def tell(count: int) -> None:
            nonlocal shown
            # Of several processes, what the others have done is seen in the journal.
            done = shown + count if crew.size == 1 else max(shown, side.rows.done())
            bar.advance(done - shown)
            shown = done

        return encode_blocks(encoder, collection, rows, blocks, tell=tell, should_stop=should_stop)
