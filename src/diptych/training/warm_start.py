"""Weights and vocabulary that a training begins with: those of another run, as far as they fit."""

from __future__ import annotations

import logging
from pathlib import Path

from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import read_json, write_json
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.target_tower import TargetTowerConfig
from diptych.encoders.two_tower import TwoTowerEncoder, TwoTowerModel

__all__ = ["open_warm_start", "same_start", "take_weights"]

logger = logging.getLogger(__name__)


def open_warm_start(folder: str) -> TwoTowerEncoder:
    """The encoder of a run folder (its best) or of an encoder folder.

    Raises:
        UsageError: neither is there, or an encoder that was not trained here.
    """
    path = Path(folder)
    for place in (path / "best", path):
        if (place / "diptych.json").is_file():
            encoder = DualEncoder.load(place, device="cpu")
            if not isinstance(encoder, TwoTowerEncoder):
                raise UsageError(
                    f"warm_start {folder} holds a {type(encoder).__name__}, which cannot be trained on",
                    "give an encoder with towers of diptych's own, or set fine_tune instead of warm_start",
                )
            return encoder
    raise UsageError(
        f"warm_start {folder} holds no encoder",
        "give the folder of a run that has validated at least once, or of a saved encoder",
    )


def take_weights(model: TwoTowerModel, source: TwoTowerModel) -> list[str]:
    """Copy every weight that both have; gives the names that only ``model`` has, which stay fresh.

    Raises:
        MismatchError: a weight of the same name and another shape, nothing in common, or captions
            that are vectors of another target model.
    """
    mine, theirs = model.config.text, source.config.text
    if (
        isinstance(mine, TargetTowerConfig)
        and isinstance(theirs, TargetTowerConfig)
        and mine.targets != theirs.targets
    ):
        raise MismatchError(
            f"the warm start's captions are vectors of {_said(theirs)}, the recipe's are of {_said(mine)}",
            "give both the same model.text.targets",
        )
    wanted, given = model.state_dict(), source.state_dict()
    shared = [name for name in wanted if name in given]
    for name in shared:
        if wanted[name].shape != given[name].shape:
            raise MismatchError(
                f"{name} has shape {tuple(given[name].shape)} in the warm start and "
                f"{tuple(wanted[name].shape)} in the recipe's model",
                "give both the same widths",
            )
    if not shared:
        raise MismatchError("the warm start and the recipe's model have no weight in common", "check both")
    model.load_state_dict({name: given[name] for name in shared}, strict=False)
    fresh = [name for name in wanted if name not in given]
    left = [name for name in given if name not in wanted]
    logger.info("warm start: %d tensors taken, %d fresh, %d left out", len(shared), len(fresh), len(left))
    return fresh


def _said(text: TargetTowerConfig) -> str:
    """Its target model in the words of a recipe."""
    return ", ".join(f"{key} = {value!r}" for key, value in text.targets.model_dump().items())


def same_start(encoder: DualEncoder, key: str, folder: Path) -> None:
    """Keep the fingerprint of what a run begins with in its ``folder``, or see that it is still the same.

    Args:
        encoder: what the recipe names.
        key: the recipe's key that names it.
        folder: the run's.

    Raises:
        MismatchError: a run is resumed whose beginning has changed meanwhile.
    """
    kept = folder / f"{key}.json"
    found = encoder.fingerprint
    if not kept.is_file():
        write_json(kept, {"fingerprint": found})
        return
    begun_with = read_json(kept)["fingerprint"]
    if begun_with != found:
        raise MismatchError(
            f"the run was begun with the weights {begun_with}, {key} now holds {found}",
            "put the old encoder back, or start a new run",
        )
