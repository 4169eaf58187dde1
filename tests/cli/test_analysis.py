"""Shortcuts, audits, gradient counts, granularity."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from PIL import Image

from diptych.analysis import CocosReport
from diptych.analysis.granularity import Granularity, compare_granularity
from diptych.analysis.granularity.result import GranularityComparison
from diptych.analysis.information import Audit
from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
from diptych.core.artifact import encode
from diptych.data.batches import Batch
from diptych.data.images import OverlaidPicture, pasted
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import EncoderHeader
from diptych.encoders.preprocessing import Preprocessing


def test_unique_codes_of_a_dataset(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mnist.npz",
        x_train=np.arange(20, dtype=np.uint8)[:, None, None].repeat(28, 1).repeat(28, 2),
        y_train=np.arange(20) % 10,
    )
    sheet = tmp_path / "sheet.png"
    done = diptych(
        f"data shortcuts {scenes_folder} --setup unique --digits {tmp_path}/mnist.npz --split test -n "
        f"2 --out {sheet}"
    )
    whole = read_collection(scenes_folder)
    test = whole.split("test")
    for row, code in ((0, "0 0 0 0 6 4"), (15, "0 0 0 0 7 9")):  # rows 64 and 79 of all 80
        assert f"{test.image_ids[row]}: {test.captions_of(row)[0]} {code}" in done.out
    done.shows("a unique number on every image and its captions, mnist.npz", f"drawn in {sheet}")
    done.shows(f"--set shortcuts.setup=unique --set shortcuts.digits={tmp_path / 'mnist.npz'}")
    options = ShortcutOptions(digits=str(tmp_path / "mnist.npz"))
    item = Shortcuts.of(options, whole, "train", 0).injected(test).item(0)
    assert isinstance(item, OverlaidPicture)
    pixels = pasted(Preprocessing().central(item.picture), item.overlay)
    with Image.open(sheet) as written:
        shown = np.asarray(written.convert("RGB"))
    tops, lefts = np.nonzero((shown == pixels[0, 0]).all(axis=2))
    assert any(
        np.array_equal(shown[top : top + 224, left : left + 224], pixels)
        for top, left in zip(tops.tolist(), lefts.tolist(), strict=True)
    )


def test_an_epoch_shows_what_training_has(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    arguments = ("data", "shortcuts", scenes_folder, "--setup", "bits", "--bits", 10, "--digits", "drawn")
    out = ("--out", tmp_path / "s.png")
    first, again, second, evaluation = (
        diptych(*arguments, *epoch, *out) for epoch in (("--epoch", 1), ("--epoch", 1), ("--epoch", 2), ())
    )
    assert first.out == again.out
    assert len({first.out, second.out, evaluation.out}) == 3
    assert "0 0 0 0 4 7" in evaluation.out  # the last of 48 training pictures
    train = read_collection(scenes_folder).split("train")
    part = train.subset([0, 15, 31, 47])
    batch = Batch(np.arange(4), np.arange(part.n_captions), part.caption_image)
    options = ShortcutOptions(setup="bits", bits=10, digits="drawn")
    made = Shortcuts.of(options, read_collection(scenes_folder), "train", 0)
    first.shows(made.training(part, batch, 0).endings[0])
    first.shows("--set shortcuts.setup=bits --set shortcuts.bits=10 --set shortcuts.digits=drawn")


def test_a_run_is_audited(diptych: Command, run_folder: Path) -> None:
    done = diptych(f"analyse audit {run_folder} --samples 20")
    done.shows("linear probe", "mlp probe", "bits there", "shared", "specific", "unstated")
    done.shows("task-relevant", "images 48 to train probes, 16 to choose, 16 to test")
    done.shows("fewer than 50 training rows per class", f"open {run_folder / 'audit' / 'report.html'}")
    printed = " ".join(done.out.split())
    assert "Only 16 validation images to choose penalties" in printed
    assert "compare one kind between runs, not two kinds within one" in printed
    found = Audit.open(run_folder / "audit" / "audit.json")
    assert list(found.protocol.probes) == ["linear", "mlp"]
    shared = found.held("without", "image", "shared", "linear")
    assert shared is not None
    done.shows(f"{shared.percent:.1f} (")


def test_several_runs_and_probes_of_the_runs_own_data(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    """Probes of the run, tested on its own test split, find what an audit of the run finds, splits or not."""
    other, some = tmp_path / "other", "--probe linear --samples 0 --seed 3"
    shutil.copytree(run_folder, other)
    done = diptych(f"analyse audit {run_folder} {other} {some} --out {tmp_path}/out")
    done.shows(f"{run_folder.name} linear", "other linear")
    first, second = (
        Audit.open(tmp_path / "out" / name / "audit" / "audit.json") for name in (run_folder.name, "other")
    )
    assert encode(first, {}) == encode(second, {})
    assert first.protocol.seed == 3
    assert (tmp_path / "out" / "other" / "audit" / "report.html").is_file()
    test = Path(shutil.copytree(scenes_folder, tmp_path / "test"))
    file = next(test.glob("*.json"))
    given = json.loads(file.read_text())
    given["images"] = [image for image in given["images"] if image["split"] == "test"]
    file.write_text(json.dumps(given))
    line = f"analyse audit {run_folder} --own-probes {some}"
    diptych(line, refused="--own-probes without --data")
    for name, data in (("with", scenes_folder), ("only", test)):
        diptych(f"{line} --data {data} --out {tmp_path}/{name}")
        found = Audit.open(tmp_path / name / "audit" / "audit.json")
        assert found.conditions == first.conditions
        assert found.protocol.about["dataset"].endswith("probes of scenes")


def test_an_encoder_on_data(diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path) -> None:
    some = "--probe linear --samples 0 --most 30"
    done = diptych(f"analyse audit {run_folder}/best --data {scenes_folder} {some} --out {tmp_path}")
    done.shows("images 30 to train probes")
    assert Audit.open(tmp_path / "audit" / "audit.json").protocol.most == 30


def test_a_run_with_shortcuts_on_other_data(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    carrying = tmp_path / "carrying"
    shutil.copytree(run_folder, carrying, ignore=shutil.ignore_patterns("audit"))
    recipe = carrying / "recipe.toml"
    section = '[shortcuts]\nsetup = "unique"\ndigits = "drawn"\ndigit_size = 5\n'
    recipe.write_text(f"{recipe.read_text(encoding='utf-8')}\n{section}", encoding="utf-8")
    diptych(f"analyse audit {carrying} --data {scenes_folder} --probe linear --samples 5")
    assert not (carrying / "audit" / "audit.json").exists(), "that is of the run's own data"
    found = Audit.open(carrying / "audit" / scenes_folder.name / "audit.json")
    assert list(found.conditions) == ["without", "with"]
    assert found.held("with", "image", "shortcut", "linear") is not None


def test_a_runs_own_objective(diptych: Command, run_folder: Path) -> None:
    done = diptych(f"analyse cocos {run_folder} --batch-size 16")
    done.shows("C^q", "C^0", "W^+", "±", "split train", "objective infonce (temperature 0.07")
    done.shows("plan distinct")
    target = run_folder / "cocos" / "scenes-train-infonce"
    assert f"open {target / 'cocos.html'}" in done.out
    assert {"cocos.json", "cocos.html", "cocos.png"} == {path.name for path in target.iterdir()}
    report = CocosReport.open(target / "cocos.json")
    assert report.protocol.batches == 15
    assert report.protocol.captions == (16, 16)
    assert report.protocol.about["encoder"] == EncoderHeader.open(run_folder / "best").fingerprint


def test_another_objective_on_embeddings(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    diptych(f"embed {run_folder} --split train --out {tmp_path}/e")
    some = "--plan captions --batch-size 24 --epsilon 0 --seed 3"
    line = f"analyse cocos {tmp_path}/e --objective triplet"
    diptych(f"{line} --option margin=0.3 {some} --out {tmp_path}/c")
    protocol = CocosReport.open(tmp_path / "c" / "cocos" / "cocos.json").protocol
    assert (protocol.objective, protocol.options["margin"], protocol.epsilon) == ("triplet", 0.3, 0.0)
    assert (protocol.about["plan"], protocol.about["seed"]) == ("captions", 3)
    diptych(f"{line} --compat published").shows("faults included")
    assert (tmp_path / "e" / "cocos" / "scenes-train-triplet-published" / "cocos.json").is_file()
    some = "--objective smoothap --plan grouped --batch-size 12 --unit score"
    done = diptych(f"analyse cocos {tmp_path}/e {some} --out {tmp_path}/s")
    done.shows("captions per image 5", "4 batches of 12 images and 60 captions")
    data = f"--data {scenes_folder} --objective nt-xent --batch-size 16 --option temperature=0.2"
    done = diptych(f"analyse cocos {run_folder}/best {data} --out {tmp_path}/b")
    done.shows("temperature 0.2")


def test_two_collections_are_compared(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = diptych(
        f"analyse granularity coarse={scenes_folder} finer={scenes_folder} --reader-option finer.finer=2 --out {out}"
    )
    coarse, finer = (Granularity.open(out / name) for name in ("coarse", "finer"))
    assert list(coarse.image_ids) == list(finer.image_ids)
    assert GranularityComparison.open(out / "comparison.json") == compare_granularity(coarse, finer)
    found = json.loads((out / "comparison.json").read_text(encoding="utf-8"))["content"]
    assert found["paired"] == 16
    words = next(one for one in found["differences"] if one["name"] == "words")
    assert words["difference"]["value"] == pytest.approx(
        finer.column("words").mean() - coarse.column("words").mean()
    )
    assert words["difference"]["low"] > 0
    done.shows("finer less coarse", "paired: 16 images with the captions of both")
    done.shows(f"{finer.feature('words').mean:.2f}", "language scenes: scenes tagger")
    done.shows(f"open {out / 'report.html'}")
    assert ">Granularity of coarse and finer</h1>" in (out / "report.html").read_text(encoding="utf-8")


def test_one_collection_as_published(diptych: Command, scenes_folder: Path) -> None:
    done = diptych(f"analyse granularity {scenes_folder} --compat published --feature words --samples 0")
    done.shows("what lies between single blanks", "as published")
    assert "adjectives" not in done.out
    done.shows("least granular", "scenes test: 16 images, 80 captions", "no intervals", "--out granularity")


def test_all_splits_and_first_captions(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    line = f"analyse granularity {scenes_folder} --split all --captions first --feature characters -n 0"
    done = diptych(line)
    done.shows("scenes all: 80 images, 80 captions")
    done.hides("least granular")
    (tmp_path / "out" / "scenes").mkdir(parents=True)
    (tmp_path / "out" / "scenes" / "thesis.txt").write_text("years of work")
    diptych(f"{line} --out {tmp_path}/out", refused="holds other things")


def test_the_study_of_table_5_1(diptych: Command, tmp_path: Path, scenes_folder: Path) -> None:
    done = diptych(
        f"study run brittleness.table-5.1 --data a={scenes_folder} --data a-fg={scenes_folder} "
        f"--reader-option a-fg.finer=1 --out {tmp_path}/out"
    )
    done.shows("a-fg less a", "Fine-grained captions have more")
