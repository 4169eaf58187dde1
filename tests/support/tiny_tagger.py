"""A tagger of a few words in the files that NLTK's has, for a folder of NLTK data."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from diptych.data.language.nltk_tagger import TAGGER

TAGDICT = {"the": "DT", "a": "DT", "dog": "NN", "is": "VBZ", "n't": "RB", "'s": "POS", ".": ".", "two": "CD"}
# Without a known word: a noun, after a number a plural, and what begins with a capital is a name.
WEIGHTS = {
    "bias": {"NN": 1.0},
    "i-1 tag CD": {"NNS": 2.0},
    **{f"i pref1 {capital}": {"NNP": 5.0} for capital in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
}
CLASSES = ["CD", "DT", "NN", "NNP", "NNS", "POS", "RB", "VBZ", "."]


def write_tagger(folder: Path, weights: object = WEIGHTS, *, zipped: bool = False) -> Path:
    """A folder of NLTK data with a tagger of a few words."""
    files = {
        f"averaged_perceptron_tagger_eng.{part}.json": json.dumps(value)
        for part, value in (("weights", weights), ("tagdict", TAGDICT), ("classes", CLASSES))
    }
    target = folder / TAGGER
    if zipped:
        target.parent.mkdir(parents=True)
        with zipfile.ZipFile(f"{target}.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"{target.name}/{name}", text)
    else:
        target.mkdir(parents=True)
        for name, text in files.items():
            (target / name).write_text(text)
    return folder
