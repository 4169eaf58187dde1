"""One caption per picture from the command line, and that numbers say so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from PIL import Image

from diptych.encoders.embeddings import EncodedCollection


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    lines = ["image,caption"]
    (tmp_path / "pictures").mkdir()
    for number in range(4):
        Image.new("RGB", (20, 30), (60 * number, 0, 0)).save(tmp_path / "pictures" / f"{number}.jpg")
        lines.append(f"pictures/{number}.jpg,picture of shade {number}")
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    return tmp_path / "shop.csv"


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
    result = json.loads((tmp_path / "one" / "evaluation" / "evaluation.json").read_text())["content"]
    assert result["protocol"]["about"]["captions"] == "random:3"
    again = diptych("evaluate", tmp_path / "one" / "embeddings", "--samples", 0)
    assert again.code == 0, again.err
    assert "captions random:3" in again.out.replace("\n", " ")
    plain = diptych("evaluate", run_folder, "--samples", 0, "--out", tmp_path / "all")
    assert "captions all" not in plain.out


def test_numbers_say_what_the_pictures_show(
    diptych: Command, run_folder: Path, pairs_file: Path, tmp_path: Path
) -> None:
    for centric in ("object", "scene"):
        out = tmp_path / centric
        done = diptych(
            *("evaluate", run_folder, "--data", pairs_file, "--reader-option", f"centric={centric}"),
            *("--split", "all", "--samples", 0, "--out", out),
        )
        assert done.code == 0, done.err
        assert f"pictures {centric}-centric" in done.out.replace("\n", " ")
        again = diptych("evaluate", out / "embeddings", "--samples", 0)
        assert f"pictures {centric}-centric" in again.out.replace("\n", " ")
    done = diptych(
        "evaluate", run_folder, "--data", pairs_file, "--split", "all", "--out", tmp_path / "unsaid"
    )
    assert "-centric" not in done.out


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


def test_the_explorer_finds_the_captions_that_were_drawn(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    """``--captions random:1`` and ``captions = random, seed 1`` are the same captions."""
    one = tmp_path / "one"
    assert diptych("evaluate", run_folder, "--captions", "random:1", "--samples", 0, "--out", one).code == 0
    scores = json.loads((one / "evaluation" / "evaluation.json").read_text())["content"]["scores"]
    targets = [
        part
        for side in ("i2t", "t2i")
        for k in (1, 5, 10)
        for part in ("--target", f"{side} R@{k}={100 * scores[side][f'R@{k}']['value']:.2f}")
    ]
    assert diptych("embed", run_folder, "--out", tmp_path / "all").code == 0
    done = diptych("protocol", tmp_path / "all", *targets, "--changes", 1)
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "all" / "protocol" / "protocol.json").read_text())["exploration"]
    exact = [one["changes"] for one in found["explanations to the printed digit"]]
    assert [{"axis": "captions", "choice": "random, seed 1"}] in exact
