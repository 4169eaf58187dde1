"""A plug-in: a loss, a measure, a perturbation and a reader, each registered where it is declared."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from torch import Tensor
from torch.nn.functional import softplus

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import TextPerturbation, registering
from diptych.core.draws import Draws
from diptych.core.errors import DataError
from diptych.core.reading import read_text
from diptych.data import Collection
from diptych.data.readers.contract import Gathering, reader
from diptych.metrics.measures import best_ranks
from diptych.metrics.measuring import MEASURES, Measure
from diptych.objectives.declaration import Objective, Within, declared


@declared("soft-hinge", "the triplet loss with softplus in the hinge's place", "this example")
class SoftHinge(Objective):
    """Per query Σ over negatives n of softplus(margin − s_p + s_n), with its best positive p."""

    def __init__(self, margin: float = 0.2) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        sides = self.per_query(scores, positives), self.per_query(scores.T, positives.T)
        return (sides[0].mean() + sides[1].mean()) / 2

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        best = scores.masked_fill(~positives, -math.inf).max(dim=1, keepdim=True).values
        return softplus(scores - best + self.margin).masked_fill(positives, 0.0).sum(dim=1)


def reciprocal_log(groups, cutoff):  # type: ignore[no-untyped-def]
    return 1 / np.log2(1 + best_ranks(groups))


MEASURES.add(
    Measure(
        name="MRLR",
        description="mean of 1 / log2(1 + r), r the rank of the best positive",
        citation="this example",
        positives="best",
        per_query=reciprocal_log,
    )
)


@registering(
    TextPerturbation, "capitals", group="typos", description="all in capitals", source="this example"
)
def capitals(caption: Caption, draws: Draws, options: object) -> str:
    if caption.text == caption.text.upper():
        raise Unchanged("it is in capitals")
    return caption.text.upper()


@reader("pipes", "a line per caption: FILE|SPLIT|CAPTION", "captions.pipes")
def read_pipes(path: Path | str) -> Collection:
    file = Path(path) if Path(path).is_file() else Path(path) / "captions.pipes"
    gathered = Gathering(join=True)
    for number, line in enumerate(read_text(file, error=DataError).splitlines(), 1):
        name, split, caption = line.split("|", 2)
        gathered.add(name, [caption], split, where=f"{file}, line {number}")
    return gathered.collection(file.parent.name, file.parent)
