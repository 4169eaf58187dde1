"""What a study's numbers are and are not, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.studies.results import Results
from diptych.studies.study import Study

if TYPE_CHECKING:
    from diptych.studies.compare import Block

__all__ = ["changed_training", "label_of"]

_OF_THE_MACHINE = (
    "model.image.weights",
    "model.text.word_vectors",
    "checkpoints.every_steps",
    "fine_tune",
    "reconstruction.targets.model",
    "model.text.targets.model",
)
"""Keys that say where things are or how often a run is saved: setting them makes no other training."""


def changed_training(results: Results) -> list[str]:
    """What was set that makes it another training than the setting's, as dotted keys."""
    keys = {key for entry in results.entries for key in entry.changed}
    return sorted(key for key in keys if not key.startswith(_OF_THE_MACHINE))


def label_of(study: Study, results: Results, block: Block, changed: list[str], reproduces: bool) -> str:
    """The sentence; ``block`` is the one on the collection's own pairs."""
    if not results.entries:
        return "Nothing has been run."
    data = results.entries[0].data
    setting = study.settings[results.entries[0].setting].description
    how = f"trained as the setting {results.setting!r} says ({setting})"
    if changed:
        how += f", with changes of {', '.join(changed)}"
    if reproduces:
        return f"A reproduction: on {data}; {how}."
    if not study.printed_keys():
        return f"Not in the paper: on {data}, {how}."
    if block.differences:
        return (
            f"Not a reproduction: on {data}, {how}. The paper's numbers are of {block.on.describe()}; "
            "they stand beside ours for orientation, and only the claims are judged."
        )
    return (
        f"Not a reproduction: on the paper's data, but {how}. The paper's numbers stand beside ours for "
        "orientation, and only the claims are judged."
    )
