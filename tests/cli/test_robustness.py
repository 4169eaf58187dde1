"""Perturb and stress."""

from __future__ import annotations

import gzip
import json

from diptych.analysis.perturbations import PERTURBATIONS, TextPerturbation, perturb_captions
from diptych.data.readers import read_collection
from diptych.evaluation.stress.result import StressResult


def test_a_dataset_s_captions(diptych, scenes_folder, tmp_path):
    out, names = tmp_path / "out", ("character-swap", "shuffle-nouns-and-adjectives")
    chosen = " ".join(f"--perturb {name}" for name in names)
    some = "--seeds 2 --seed 3 --set character-swap.edits=2 -n 1"
    done = diptych(f"data perturb {scenes_folder} {chosen} {some} --out {out}")
    test = read_collection(scenes_folder).split("test")
    kind = PERTURBATIONS.get("character-swap")
    assert isinstance(kind, TextPerturbation)
    expected = perturb_captions(kind, test.captions, test.caption_ids, seed=4, options={"edits": 2})
    written = (out / "character-swap-4.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["perturbed"] for line in lines] == expected.texts
    assert [line["caption"] for line in lines] == list(test.captions)
    assert lines[-1]["image"] == test.image_ids[-1]
    summary = json.loads((out / "perturbations.json").read_text(encoding="utf-8"))
    found = [(one["name"], one["seed"]) for one in summary["perturbations"]]
    assert found == [(name, seed) for name in names for seed in (3, 4)]
    assert summary["split"] == "test"
    assert summary["language"].startswith("scenes: ")
    done.shows(f"{test.name}, test: {len(test.captions)} captions; language scenes: ", f"written to {out}")
    done.shows(f"next: less {out / 'character-swap-3.jsonl'}")


def test_captions_of_a_text_file(diptych, tmp_path):
    file = tmp_path / "two words.txt"
    text = "An amphibious plane is floating in front of the London Bridge.\na b c\n"
    file.write_text(text, encoding="utf-8")
    line = f"data perturb '{file}' --perturb"
    done = diptych(f"{line} character-swap --compat published")
    rows = [" ".join(row.split()) for row in done.out.splitlines()]
    assert "character-swap 42 1 2 the result is the caption itself 1" in rows
    done.shows("An amphiboius plane is floating", "2 captions; compat published")
    done.shows(f"next: diptych {line} character-swap --compat published --out perturbed")
    assert [path.name for path in tmp_path.iterdir()] == ["two words.txt"]
    done = diptych(f"{line} typos --compat published")
    done.shows("left out, for they have no published form: recognition-errors, typing-errors")
    diptych(f"{line} typos").hides("left out")
    done = diptych(f"{line} 'missing-character, pictures'")
    done.shows("left out, for they change images: blur")
    done.hides("published form")
    file.write_text("- " * 400 + "horses" + " -" * 400, encoding="utf-8")
    done = diptych(f"{line} missing-character --out {tmp_path}/out")
    assert "horses" in done.out  # a long caption is shown around the change
    assert done.out.count("-") < 600


def test_the_list_shows_every_declaration(diptych):
    done = diptych("data perturb --list")
    done.shows(*(one.name for one in PERTURBATIONS))
    done.shows("edits=1 keyboard=qwerty", "word order: the same words in another order")


QUICK = "--seeds 2 --samples 50 --flips 99"


def test_a_run_is_stressed_and_opened_again(diptych, run_folder, tmp_path):
    out = tmp_path / "stressed"
    line = f"analyse stress {run_folder} --perturb 'typos,word order' --perturb blur {QUICK} --out {out}"
    done = diptych(line)
    done.shows("typos: a slip of the keyboard", "word order: the same words in another order")
    done.shows("character-swap", "Relative change in % of the clean value")
    done.shows("80 over a gallery of 16 pictures of the split", "seeds 0, 1; compat none; language scenes")
    done.shows("Holm over", f"open {out / 'report.html'}")
    found = StressResult.open(out)
    assert found.row("blur").direction == "i2t"
    assert found.row("shuffle-all-words").queries == 80
    assert found.left_out == {}
    with gzip.open(out / "conditions" / "units" / "character-swap-0" / "texts.jsonl.gz", "rt") as lines:
        assert set(json.loads(next(lines))) == {"id", "text"}
    before = (out / "report.html").read_bytes()
    again = diptych(line)
    opened = f"{out} held this run, finished, of the same content: opened, not run again\n"
    assert opened in again.out
    assert again.out.replace(opened, "") == done.out
    assert (out / "report.html").read_bytes() == before
    (out / "report.html").unlink()
    diptych(f"report {out}")
    assert (out / "report.html").read_bytes() == before
    (out / "stress.json").write_text('{"format": 2, "state": "running"}')
    diptych(f"report {out}", failed="holds something else, expected stress")


def test_other_data_by_its_place_and_options_by_name(diptych, run_folder, scenes_folder, tmp_path):
    out = tmp_path / "stressed"
    done = diptych(
        f"analyse stress {run_folder}/best {scenes_folder} --split val --perturb occlusion,blur "
        f"--perturb synonyms --language none --set blur.severity=1 --gallery all {QUICK} --out {out}"
    )
    done.shows("80 over a gallery of 80 pictures of the whole collection")
    done.shows("Could not be run", "synonym-noun needs a", "synonym-adjective needs a")
    assert "synonym-noun" in (out / "report.html").read_text()
    found = StressResult.open(out)
    assert found.protocol["split"] == "val"
    assert found.row("blur").options["severity"] == 1
    assert found.row("occlusion").queries == 16


def test_without_out_a_run_holds_its_own(diptych, run_folder):
    diptych(f"analyse stress {run_folder} --perturb distraction-true {QUICK}")
    folders = list((run_folder / "stress").iterdir())
    assert [folder.name.rpartition("-")[2] for folder in folders] == ["test"]
    assert (folders[0] / "report.html").is_file()
    assert not (folders[0] / "embeddings").exists()  # those of the run's evaluation
