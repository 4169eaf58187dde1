"""One caption per picture from the command line, and that numbers say so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from commands import Command

from diptych.encoders.encode import EncodedCollection


def test_a_caption_of_each_picture_is_embedded(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    whole, one, other = tmp_path / "all", tmp_path / "first", tmp_path / "random"
    assert diptych("embed", run_folder, "--out", whole).code == 0
    done = diptych("embed", run_folder, "--captions", "first", "--out", one)
    assert done.code == 0, done.err
    assert "16 pictures and 16 captions" in done.out
    assert diptych("embed", run_folder, "--captions", "random:3", "--out", other).code == 0
    everything, first, drawn = map(EncodedCollection.open, (whole, one, other))
    assert list(first.texts.ids) == list(everything.texts.ids)[::5]
    assert np.allclose(first.texts.rows, everything.texts.rows[::5], atol=1e-6)
    assert list(drawn.texts.ids) != list(first.texts.ids)
    assert drawn.about["notes"][-1] == "1 caption of each image, drawn with seed 3"
    assert len({one.about["data"] for one in (everything, first, drawn)}) == 3


def test_numbers_say_which_captions_they_are_of(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    done = diptych(
        "evaluate", run_folder, "--captions", "random:3", "--samples", 0, "--out", tmp_path / "one"
    )
    assert done.code == 0, done.err
    said = done.out.replace("\n", " ")
    assert "captions random:3" in said
    result = json.loads((tmp_path / "one" / "evaluation" / "evaluation.json").read_text())
    assert result["protocol"]["about"]["captions"] == "random:3"
    again = diptych("evaluate", tmp_path / "one" / "embeddings", "--samples", 0)
    assert again.code == 0, again.err
    assert "captions random:3" in again.out.replace("\n", " ")
    plain = diptych("evaluate", run_folder, "--samples", 0, "--out", tmp_path / "all")
    assert "captions all" not in plain.out


def test_each_choice_has_its_own_folder(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(run_folder, tmp_path / "run")
    for word, ending in (("all", ""), ("first", "-first"), ("random:3", "-random-3")):
        done = diptych("evaluate", run, "--captions", word, "--samples", 0)
        assert done.code == 0, done.err
        for kind in ("embeddings", "evaluation"):
            names = [folder.name for folder in (run / kind).iterdir()]
            assert any(name.endswith(f"-test{ending}") for name in names), names


def test_what_is_asked_wrongly(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    done = diptych("evaluate", run_folder, "--captions", "two")
    assert (done.code, "captions is 'two'" in done.err) == (2, True)
    assert diptych("embed", run_folder, "--out", tmp_path / "e").code == 0
    done = diptych("evaluate", tmp_path / "e", "--captions", "first")
    assert (done.code, "is embedded already" in done.err) == (2, True)
