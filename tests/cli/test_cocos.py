"""``diptych cocos`` on a run, on embeddings, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command

from diptych.analysis import CocosReport
from diptych.encoders.dual_encoder import EncoderHeader


def test_a_runs_own_objective(diptych: Command, run_folder: Path) -> None:
    done = diptych("cocos", run_folder, "--batch-size", 16)
    assert done.code == 0, done.err
    for words in (
        "C^q",
        "C^0",
        "W^+",
        "±",
        "split train",
        "objective infonce (temperature 0.07",
        "plan distinct",
    ):
        assert words in done.out, words
    target = run_folder / "cocos" / "scenes-train-infonce"
    assert f"next: open {target / 'cocos.html'}" in done.out
    assert {"cocos.json", "cocos.html", "cocos.png"} == {path.name for path in target.iterdir()}
    report = CocosReport.open(target / "cocos.json")
    # 48 images with 5 captions each, every caption once.
    assert report.protocol.batches == 15
    assert report.protocol.captions == (16, 16)
    assert report.protocol.about["encoder"] == EncoderHeader.open(run_folder / "best").fingerprint


def test_another_objective_on_embeddings(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    assert diptych("embed", run_folder, "--split", "train", "--out", tmp_path / "e").code == 0
    done = diptych(
        "cocos", tmp_path / "e", "--objective", "triplet", "--option", "margin=0.3", "--plan", "captions",
        "--batch-size", "24", "--epsilon", "0", "--seed", "3", "--out", tmp_path / "c",
    )  # fmt: skip
    assert done.code == 0, done.err
    protocol = CocosReport.open(tmp_path / "c" / "cocos" / "cocos.json").protocol
    assert (protocol.objective, protocol.options["margin"], protocol.epsilon) == ("triplet", 0.3, 0.0)
    assert (protocol.about["plan"], protocol.about["seed"]) == ("captions", 3)
    again = diptych("cocos", tmp_path / "e", "--objective", "triplet", "--compat", "published")
    assert again.code == 0, again.err
    assert "faults included" in again.out
    assert (tmp_path / "e" / "cocos" / "scenes-train-triplet-published" / "cocos.json").is_file()


def test_smoothap_in_groups(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    done = diptych(
        "cocos", run_folder, "--objective", "smoothap", "--plan", "grouped", "--batch-size", 12, "--unit", "score",
        "--out", tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "captions per image 5" in done.out
    assert "4 batches of 12 images and 60 captions" in done.out


def test_an_encoder_needs_an_objective(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    best = run_folder / "best"
    refused = diptych("cocos", best, "--data", scenes_folder, "--out", tmp_path)
    assert refused.code == 2
    assert "no objective given" in refused.err
    assert "triplet-hardest" in refused.err
    # Its temperature was .07; NT-Xent's default is .1.
    arguments = (
        "cocos",
        best,
        "--data",
        scenes_folder,
        "--objective",
        "nt-xent",
        "--batch-size",
        16,
        "--out",
    )
    assert "temperature 0.07" in diptych(*arguments, tmp_path / "a").out
    assert "temperature 0.2" in diptych(*arguments, tmp_path / "b", "--option", "temperature=0.2").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--objective", "fancy"), "unknown objective 'fancy'"),
        (("--option", "colour=3"), "has no option 'colour'"),
        (("--epsilon", "-1"), "epsilon -1.0"),
        (("--unit", "metre"), "unit 'metre'"),
        (("--compat", "old"), "compat 'old'"),
        (("--plan", "random"), "unknown plan 'random'"),
        (("--batch-size", "4000"), "batch size 4000 is larger"),
        (("--objective", "siglip", "--compat", "published"), "is not among those that the paper counts"),
        (("--split", "tset"), "did you mean 'test'?"),
    ],
)
def test_what_cannot_be_counted(
    diptych: Command, run_folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = diptych("cocos", run_folder, *arguments)
    assert done.code == 2, (done.out, done.err)
    assert words in done.err
    assert "Traceback" not in done.err


def test_help_has_an_example(diptych: Command) -> None:
    done = diptych("cocos", "--help")
    assert done.code == 0
    assert "diptych cocos runs/flickr8k" in done.out
