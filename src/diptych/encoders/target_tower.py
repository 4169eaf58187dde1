"""Target tower: a sentence encoder's vectors as captions, as they are or through a head.

Source: Bleeker, Yates, de Rijke, 2022, 5.5; the published head has two layers without bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.encoders.targets.contract import TargetModel, TargetOptions
from diptych.encoders.tower import TargetInputs, Tower, needs_head, text_head


class TargetTowerConfig(Options):
    """Options of a target tower."""

    kind: Literal["targets"] = "targets"
    targets: TargetOptions = TargetOptions()  # the model that makes the vectors
    head: Literal["none", "linear", "mlp"] = "none"  # none: the vectors as they are
    hidden: int | None = Field(None, ge=1)  # width of the MLP head's hidden layer; None: the targets' own
    bias: bool = False  # whether the head's layers have one
    batch_norm: bool = False  # normalise the head's output over the batch, before unit length

    _head = model_validator(mode="after")(needs_head)


class TargetTower(Tower):
    """Vectors of sentences to unit rows."""

    def __init__(
        self,
        config: TargetTowerConfig,
        width: int,
        targets: TargetModel,
        load_weights: bool = True,
        **ends: Any,
    ) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.targets = targets
        self._last: tuple[str, TargetInputs] | None = None
        if config.head == "none" and targets.width != self.base:
            raise UsageError(
                f"targets of width {targets.width} do not fit the shared width {self.base} and there is no head",
                f"set model.width = {targets.width}, or model.text.head = 'mlp'",
            )
        self.head = text_head(config, targets.width, self.base, config.hidden or targets.width, "targets")

    def inputs(self, texts: Sequence[str]) -> TargetInputs:
        key = fingerprint(list(texts))  # the last are kept: validation needs the same after every epoch
        if self._last is None or self._last[0] != key:
            self._last = key, TargetInputs(self.targets.encode(texts))
        return self._last[1]

    def describe(self) -> dict[str, Any]:
        return {"targets": self.targets.describe(), "head": self.config.head}

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """(n, d) vectors → (n, width) unit rows."""
        return self.finish(self.head(vectors))
