"""Shortcuts, audits, gradient counts, granularity, protocols."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from two_stage import TwoStage, published_recalls, rounded

from diptych.analysis.cocos_report import CocosReport
from diptych.analysis.granularity.compare import compare_granularity
from diptych.analysis.granularity.result import Granularity, GranularityComparison
from diptych.analysis.information.audit import Audit
from diptych.core.artifact import encode
from diptych.core.files import write_json
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import EncoderHeader
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.metrics import Candidates, Reranked, top_k


def test_shortcuts_of_a_dataset(diptych, scenes_folder, tmp_path):
    file, sheet = tmp_path / "mnist.npz", tmp_path / "sheet.png"
    shades = np.arange(20, dtype=np.uint8)[:, None, None].repeat(28, 1).repeat(28, 2)
    np.savez(file, x_train=shades, y_train=np.arange(20) % 10)
    line = f"data shortcuts {scenes_folder} --out {sheet}"
    done = diptych(f"{line} --setup unique --digits {file} --split test -n 2")
    test = read_collection(scenes_folder).split("test")
    for row, code in ((0, "0 0 0 0 6 4"), (15, "0 0 0 0 7 9")):  # rows 64 and 79 of all 80
        done.shows(f"{test.image_ids[row]}: {test.captions_of(row)[0]} {code}")
    done.shows("a unique number on every image and its captions, mnist.npz", f"drawn in {sheet}")
    done.shows(f"--set shortcuts.setup=unique --set shortcuts.digits={file}")
    assert sheet.is_file()
    line += " --setup bits --bits 10 --digits drawn"
    first, again, second, evaluation = (
        diptych(f"{line} {epoch}").out for epoch in ("--epoch 1", "--epoch 1", "--epoch 2", "")
    )
    assert first == again
    assert len({first, second, evaluation}) == 3
    assert "0 0 0 0 4 7" in evaluation  # the last of 48 training pictures
    assert "--set shortcuts.setup=bits --set shortcuts.bits=10 --set shortcuts.digits=drawn" in first


@pytest.mark.usefixtures("short_path")
def test_runs_are_audited_on_their_own_and_on_other_data(diptych, run_folder, scenes_folder, tmp_path):
    """Probes of the run, tested on its own test split, find what an audit of the run finds, splits or not."""
    some = "--probe linear --samples 20 --seed 3 --most 30"
    done = diptych(f"analyse audit {run_folder} {some}")
    done.shows("linear probe", "bits there", "shared", "specific", "unstated")
    done.shows("task-relevant", "images 30 to train probes, 16 to choose, 16 to test")
    done.shows("fewer than 50 training rows per class", f"open {run_folder / 'audit' / 'report.html'}")
    first = Audit.open(run_folder / "audit" / "audit.json")
    assert (list(first.protocol.probes), first.protocol.seed) == (["linear"], 3)
    shared = first.held("without", "image", "shared", "linear")
    assert shared is not None
    done.shows(f"{shared.percent:.1f} (")
    test = Path(shutil.copytree(scenes_folder, tmp_path / "test"))
    file = next(test.glob("*.json"))
    given = json.loads(file.read_text())
    given["images"] = [image for image in given["images"] if image["split"] == "test"]
    file.write_text(json.dumps(given))
    diptych(f"analyse audit {run_folder} --own-probes {some}", refused="--own-probes without --data")
    other = Path(shutil.copytree(run_folder, tmp_path / "other", ignore=shutil.ignore_patterns("audit")))
    done = diptych(
        f"analyse audit {run_folder} {other} --own-probes {some} --data {test} --out {tmp_path}/own"
    )
    done.shows(f"{run_folder.name} linear", "other linear")
    own, theirs = (
        Audit.open(tmp_path / "own" / one.name / "audit" / "audit.json") for one in (run_folder, other)
    )
    assert encode(own, {}) == encode(theirs, {})
    assert own.conditions == first.conditions
    assert own.protocol.about["dataset"] == "scenes, probes of scenes"
    assert (tmp_path / "own" / "other" / "audit" / "report.html").is_file()


@pytest.mark.usefixtures("short_path")
def test_a_run_with_shortcuts_on_other_data(diptych, run_folder, scenes_folder, tmp_path):
    carrying = tmp_path / "carrying"
    shutil.copytree(run_folder, carrying, ignore=shutil.ignore_patterns("audit"))
    recipe = carrying / "recipe.toml"
    section = '[shortcuts]\nsetup = "unique"\ndigits = "drawn"\ndigit_size = 5\n'
    recipe.write_text(f"{recipe.read_text(encoding='utf-8')}\n{section}", encoding="utf-8")
    diptych(f"analyse audit {carrying} --data {scenes_folder} --probe linear --samples 0 --most 30")
    assert not (carrying / "audit" / "audit.json").exists(), "that is of the run's own data"
    found = Audit.open(carrying / "audit" / scenes_folder.name / "audit.json")
    assert list(found.conditions) == ["without", "with"]
    assert found.held("with", "image", "shortcut", "linear") is not None
    assert found.protocol.most == 30


def test_gradient_counts(diptych, run_folder, scenes_folder, tmp_path):
    done = diptych(f"analyse cocos {run_folder} --batch-size 16")
    done.shows("C^q", "C^0", "W^+", "±", "split train", "objective infonce (temperature 0.07")
    done.shows("plan distinct")
    target = run_folder / "cocos" / "scenes-train-infonce"
    done.shows(f"open {target / 'cocos.html'}")
    assert {"cocos.json", "cocos.html", "cocos.png"} == {path.name for path in target.iterdir()}
    protocol = CocosReport.open(target / "cocos.json").protocol
    assert (protocol.batches, protocol.captions) == (15, (16, 16))
    assert protocol.about["encoder"] == EncoderHeader.open(run_folder / "best").fingerprint
    diptych(f"embed {run_folder} --split train --out {tmp_path}/e")
    some = "--option margin=0.3 --plan captions --batch-size 24 --epsilon 0 --seed 3 --compat published"
    diptych(f"analyse cocos {tmp_path}/e --objective triplet {some}").shows("faults included")
    target = tmp_path / "e" / "cocos" / "scenes-train-triplet-published"
    protocol = CocosReport.open(target / "cocos.json").protocol
    assert (protocol.objective, protocol.options["margin"], protocol.epsilon) == ("triplet", 0.3, 0.0)
    assert (protocol.about["plan"], protocol.about["seed"]) == ("captions", 3)
    data = f"--data {scenes_folder} --objective smoothap --plan grouped --batch-size 12 --unit score"
    done = diptych(f"analyse cocos {run_folder}/best {data} --out {tmp_path}/s")
    done.shows("captions per image 5", "4 batches of 12 images and 60 captions")
    assert (tmp_path / "s" / "cocos" / "cocos.json").is_file()


def test_two_collections_are_compared(diptych, scenes_folder, tmp_path):
    out = tmp_path / "out"
    names = f"coarse={scenes_folder} finer={scenes_folder} --reader-option finer.finer=2"
    done = diptych(f"analyse granularity {names} --out {out}")
    coarse, finer = (Granularity.open(out / name) for name in ("coarse", "finer"))
    assert list(coarse.image_ids) == list(finer.image_ids)
    assert GranularityComparison.open(out / "comparison.json") == compare_granularity(coarse, finer)
    found = json.loads((out / "comparison.json").read_text(encoding="utf-8"))["content"]
    assert found["paired"] == 16
    words = next(one for one in found["differences"] if one["name"] == "words")
    means = [one.column("words").mean() for one in (coarse, finer)]
    assert words["difference"]["value"] == pytest.approx(means[1] - means[0])
    assert words["difference"]["low"] > 0
    done.shows("finer less coarse", "paired: 16 images with the captions of both")
    done.shows(f"{finer.feature('words').mean:.2f}", "language scenes: scenes tagger")
    done.shows(f"open {out / 'report.html'}")
    assert ">Granularity of coarse and finer</h1>" in (out / "report.html").read_text(encoding="utf-8")


def test_one_collection(diptych, scenes_folder, tmp_path):
    line = f"analyse granularity {scenes_folder}"
    done = diptych(f"{line} --compat published --feature words --samples 0")
    done.shows("what lies between single blanks", "as published", "least granular", "no intervals")
    done.shows("scenes test: 16 images, 80 captions", "--out granularity")
    done.hides("adjectives")
    line += " --split all --captions first --feature characters -n 0"
    done = diptych(line)
    done.shows("scenes all: 80 images, 80 captions")
    done.hides("least granular")
    (tmp_path / "out" / "scenes").mkdir(parents=True)
    (tmp_path / "out" / "scenes" / "thesis.txt").write_text("years of work")
    diptych(f"{line} --out {tmp_path}/out", refused="holds other things")


X_VLM = "reproducibility:table-2.1:Repr. X-VLM, Flickr30k"


def embedded(folder, model, split):
    """What ``diptych embed`` leaves, without an encoder."""
    shared = {"dataset": "made-up", "split": split, "data": f"data of {split}"}
    for kind, rows in (("image", model.images), ("text", model.texts)):
        ids = [f"{kind}{row}" for row in range(len(rows))]
        Embeddings(ids, rows, "e" * 16, shared["data"], kind, shared).save(folder / f"{kind}s")
    sides = (Embeddings.open(folder / name) for name in ("images", "texts"))
    EncodedCollection(*sides, model.home, shared).write_header(folder)
    origin = {"model": "made-up", "data": {"path": "made-up"}, "split": split}
    write_json(folder / "origin.json", origin)
    return folder


def reranked(folder, model, encoder="e" * 16):
    sides = []
    for queries, gallery, matching in (
        (model.images, model.texts, model.matching),
        (model.texts, model.images, model.matching.T),
    ):
        items, scores = top_k(queries, gallery, 16)
        final = np.take_along_axis(matching, items, axis=1).astype(np.float32)
        sides.append(Candidates(items, scores.astype(np.float32), final))
    return Reranked(*sides, about={"encoder": encoder, "data": "data of test"}).save(folder)


def targets(values):
    return " ".join(["--changes 1", *(f"--target '{name}={value}'" for name, value in values.items())])


def test_the_protocol_of_printed_numbers(diptych, tmp_path):
    """A paper re-ranked two candidates; another measured another split, a third other data."""
    model, val, out = TwoStage(150), TwoStage(150, seed=4, contrast=0.8), tmp_path / "out"
    printed = targets(rounded(published_recalls(model.contrastive, model.matching, model.home, 2)))
    folder, other = embedded(tmp_path / "test", model, "test"), embedded(tmp_path / "val", val, "val")
    line = f"analyse protocol {folder}"
    done = diptych(f"{line} --reranked {reranked(tmp_path / 'reranked', model)} {printed} --out {out}")
    done.shows("k_test = 2 explains it", "no proof of it", "to 5 candidates of each query")
    done.shows("test: made-up test, 150 images, 750 captions; encoder eeeeeeeeeeeeeeee")
    done.shows(f"open {out / 'report.html'}")
    written = json.loads((out / "protocol.json").read_text())
    assert written["explanations"][0]["changes"] == "k_test = 2"
    assert written["says"][1].startswith("k_test = 2 explains it")
    assert "k_test = 2" in (out / "report.html").read_text()
    values = targets(rounded(published_recalls(val.contrastive, None, val.home, 0)))
    done = diptych(f"{line} --also val={other} {values}")
    done.shows("source = val explains it", "next: diptych analyse protocol --", "--out protocol")
    assert not (folder / "protocol").exists()  # nothing is written without --out
    done = diptych(f"{line} --published '{X_VLM}' --changes 1 --out {out}")
    done.shows("Nothing that was tried explains it", "with --reranked FOLDER")
    warning = "OTHER DATA: printed of flickr30k test (1,000 images), computed from made-up test (150 images);"
    assert done.out.startswith(f"warning: {warning}")
    assert json.loads((out / "protocol.json").read_text())["says"][0].startswith(warning)
    page = (out / "report.html").read_text()
    assert page.index("OTHER DATA") < page.index("Under the default protocol")
    # candidates that were stored with embeddings are used, those of another encoder are not
    stored = reranked(folder / "reranked", model)
    diptych(f"{line} {printed}").shows("k_test = 2 explains it", f"candidates of {stored}")
    reranked(stored, model, encoder="f" * 16)
    done = diptych(f"{line} {printed}")
    done.shows(f"{stored} is left aside")
    done.hides("k_test = 2 explains it")
    wrong = "re-ranked with encoder ffffffffffffffff, the embeddings are of eeeeeeeeeeeeeeee"
    diptych(f"{line} --target 'i2t R@1=5' --reranked {stored}", failed=wrong)
    diptych(f"{line} --target 'i2t R@1=5' --reranked {other}", failed="no reranked.json")


def test_the_protocol_of_score_matrices_and_of_digits(diptych, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = TwoStage(150)
    printed = targets(rounded(published_recalls(model.contrastive, model.matching, model.home, 2)))
    arrays = {"itc": model.contrastive, "itm": model.matching, "t2i": model.matching.T, "home": model.home}
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    done = diptych(f"analyse protocol itc.npy --matching i2t=itm.npy --matching t2i=t2i.npy {printed}")
    done.shows("k_test = 2 explains it", "captions: 5 texts of each image, next to each other (assumed)")
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".npy"]
    done = diptych(f"analyse protocol itc.npy --caption-image home.npy {printed} --out own")
    done.shows("or --matching FILE for a score matrix")
    done.hides("assumed")
    diptych("analyse protocol t2i.npy --target 'i2t R@1=5'", refused="150 texts of 750 images")
    done = diptych("analyse protocol --published 'reproducibility:table-2.1:Repr. CLIP, Flickr30k'")
    done.shows("1,014 queries, cut off (images of Flickr30k val")
    diptych("analyse protocol --target 'i2t R@1=63.3' --out out").shows("i2t R@1", "63.3")
    assert json.loads((tmp_path / "out" / "protocol.json").read_text())["target"] == {"i2t R@1": "63.3"}
    assert (tmp_path / "out" / "report.html").is_file()
