"""What a study's numbers are and are not, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.studies.results import Entry, Results
from diptych.studies.rows import FINE_TUNE
from diptych.studies.study import Study

if TYPE_CHECKING:
    from diptych.studies.comparison import Block

_OF_THE_MACHINE = (
    "model.image.weights",
    "model.text.word_vectors",
    "checkpoints.every_steps",
    FINE_TUNE,
    "reconstruction.targets.model",
    "model.text.targets.model",
    "dense",
    "sparsify.vocabulary.source",
    "sparsify.training.checkpoint_minutes",
    "measure.",
)
"""Keys that say where things are or how often a run is saved: setting them makes no other training.

What is fine-tuned from an encoder that was given, or made of its rows, is the paper's training, but no
reproduction: whether it is the paper's encoder cannot be checked.
"""


def changed_training(results: Results) -> list[str]:
    """What was set that makes it another training than the setting's, as dotted keys."""
    keys = {key for entry in results.entries for key in entry.changed}
    return sorted(key for key in keys if not key.startswith(_OF_THE_MACHINE))


def given_start(entry: Entry) -> str:
    """The encoder that a person gave a training to go on from; empty for none."""
    return entry.fine_tuned_from or ("an encoder without a name" if FINE_TUNE in entry.changed else "")


def label_of(study: Study, results: Results, block: Block, changed: list[str], is_the_papers: bool) -> str:
    """The sentence."""
    if not results.entries:
        return "Nothing has been run."
    data = results.entries[0].data
    setting = study.settings[results.entries[0].setting].description
    how = f"trained as the setting {results.setting!r} says ({setting})"
    if changed:
        how += f", with changes of {', '.join(changed)}"
    given = ", ".join(dict.fromkeys(start for entry in results.entries if (start := given_start(entry))))
    begun = "on rows of" if any(row.given for row in (*study.rows, *study.bases)) else "fine-tuned from"
    if given and is_the_papers:
        whole = all(given_start(entry) for entry in results.entries)
        first = "The" if whole else "A reproduction where trained from scratch, else the"
        return (
            f"{first} paper's training, {begun} {given}: on {data}; {how}. Whether that is the paper's "
            "encoder cannot be checked: its cells have no verdict."
        )
    if is_the_papers:
        return f"A reproduction: on {data}; {how}."
    if given:
        how += f", {begun} {given}"
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


def label_of_log(study: Study, results: Results, block: Block, is_the_papers: bool) -> str:
    """The sentence for a study of a log, for which nothing is trained but what predicts."""
    if not results.entries:
        return "Nothing has been run."
    entry = results.entries[0]
    how = f"on {entry.data}; as the setting {entry.setting!r} says ({study.settings[entry.setting].description})"
    changed = sorted({key for one in results.entries for key in one.changed})
    if changed:
        how += f", with changes of {', '.join(changed)}"
    if study.without_data:
        return f"Held against the paper: {study.settings[entry.setting].description}."
    if is_the_papers:
        return f"A reproduction: {how}."
    return (
        f"Not a reproduction: {how}. The paper's numbers are of {block.on.describe()}; they stand beside ours for "
        "orientation, and only the claims are judged."
    )


def label_of_several(study: Study, results: Results, changed: list[str], reproduces: bool) -> str:
    """The sentence for a study of several collections: what stands for its rows, on what it was measured."""
    if not results.entries:
        return "Nothing has been run."
    stands = {}
    for entry in results.entries:
        if study.row(entry.row).adapt is not None:
            continue  # it is its base's
        row = study.row(entry.row)
        made = (
            "nothing is trained" if row.captions_alone else f"trained as the setting {results.setting!r} says"
        )
        stands[row.label] = entry.fine_tuned_from or made
    who = "; ".join(f"{label}: {what}" for label, what in stands.items())
    data = "; ".join(dict.fromkeys(entry.data for entry in results.entries))
    how = f" With changes of {', '.join(changed)}." if changed else ""
    alone = all(row.captions_alone for row in study.rows)
    if alone and reproduces:
        verdicts = "Cells have a verdict where collection and captions are those of the printed number."
    elif alone:
        verdicts = (
            "Not a reproduction: the paper's numbers are of other captions. They stand beside ours for "
            "orientation, and only claims are judged."
        )
    elif reproduces:
        verdicts = (
            "Cells have a verdict where collection, captions and candidates are those of the printed number; "
            "whether these are the paper's weights cannot be checked."
        )
    else:
        verdicts = (
            "Not a reproduction: the paper's numbers are of other data, or of other models. They stand beside "
            "ours for orientation, and only orders and claims are judged."
        )
    return f"{who}. On {data}.{how} {verdicts}"
