"""Perturb, stress, and stressed models compared."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from commands import Command

from diptych.analysis.perturbations import PERTURBATIONS, TextPerturbation, perturb_captions
from diptych.data.readers import read_collection
from diptych.evaluation.stress import StressResult


def test_a_dataset_s_captions(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = diptych(
        f"data perturb {scenes_folder} --perturb character-swap --perturb shuffle-nouns-and-adjectives "
        f"--seeds 2 --seed 3 --set character-swap.edits=2 -n 1 --out {out}"
    )
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
    assert [(one["name"], one["seed"]) for one in summary["perturbations"]] == [
        ("character-swap", 3),
        ("character-swap", 4),
        ("shuffle-nouns-and-adjectives", 3),
        ("shuffle-nouns-and-adjectives", 4),
    ]
    assert summary["split"] == "test"
    assert summary["language"].startswith("scenes: ")
    done.shows(f"{test.name}, test: {len(test.captions)} captions; language scenes: ", f"written to {out}")
    done.shows(f"next: less {out / 'character-swap-3.jsonl'}")


def test_captions_of_a_text_file_as_published(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "captions.txt"
    file.write_text(
        "An amphibious plane is floating in front of the London Bridge.\na b c\n", encoding="utf-8"
    )
    done = diptych(f"data perturb {file} --perturb character-swap --compat published")
    assert "An amphiboius plane is floating" in done.out
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "character-swap 42 1 2 the result is the caption itself 1" in rows
    done.shows("captions: 2 captions; compat published")
    done.shows(
        f"next: diptych data perturb {file} --perturb character-swap --compat published --out perturbed"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["captions.txt"]


def test_long_captions_are_shown_around_the_change(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("- " * 400 + "horses" + " -" * 400, encoding="utf-8")
    done = diptych(f"data perturb {file} --perturb missing-character --out {tmp_path}/out")
    assert "horses" in done.out
    assert done.out.count("-") < 600
    assert f"next: less {tmp_path / 'out' / 'missing-character-0.jsonl'}" in done.out


def test_the_list_shows_every_declaration(diptych: Command) -> None:
    done = diptych("data perturb --list")
    for one in PERTURBATIONS:
        assert one.name in done.out
    done.shows("edits=1 keyboard=qwerty", "word order: the same words in another order")


def test_pictures_are_left_out_of_all(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "c.txt"
    file.write_text("cat\n", encoding="utf-8")
    done = diptych(f"data perturb {file} --perturb 'missing-character, pictures'")
    assert "left out, for they change pictures: blur" in done.out
    assert "published form" not in done.out


def test_what_was_never_published_is_left_out_of_a_group(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "two words.txt"
    file.write_text("cat\n", encoding="utf-8")
    done = diptych(f"data perturb '{file}' --perturb typos --compat published")
    done.shows("left out, for they have no published form: recognition-errors, typing-errors")
    done.shows(f"next: diptych data perturb '{file}' --perturb typos --compat published --out perturbed")
    assert "left out" not in diptych(f"data perturb '{file}' --perturb typos").out


QUICK = "--seeds 2 --samples 50 --flips 99"


def test_a_run_is_stressed_and_goes_on(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "stressed"
    line = f"analyse stress {run_folder} --perturb 'typos,word order' --perturb blur {QUICK} --out {out}"
    done = diptych(line)
    done.shows("typos: a slip of the keyboard", "word order: the same words in another order")
    done.shows(
        "character-swap",
        "Relative change in % of the clean value",
        "80 over a gallery of 16 pictures of the split",
    )
    done.shows("seeds 0, 1; compat none; language scenes", "Holm over", f"open {out / 'report.html'}")
    found = StressResult.open(out)
    assert found.row("blur").direction == "i2t"
    assert found.row("shuffle-all-words").queries == 80
    assert found.left_out == {}
    with gzip.open(out / "conditions" / "units" / "character-swap-0" / "texts.jsonl.gz", "rt") as lines:
        first = json.loads(next(lines))
    assert set(first) == {"id", "text"}
    before = (out / "report.html").read_bytes()
    again = diptych(line)
    opened = f"{out} held this run, finished, of the same content: opened, not run again\n"
    assert opened in again.out
    assert again.out.replace(opened, "") == done.out
    assert (out / "report.html").read_bytes() == before


def test_the_page_is_made_once_more(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "stressed"
    diptych(f"analyse stress {run_folder} --perturb character-swap {QUICK} --out {out}")
    before = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    diptych(f"report {out}")
    assert (out / "report.html").read_bytes() == before
    diptych(f"report {out} --split val", code=2)


def test_what_needs_a_language_is_left_out_with_a_line_or_refused(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "stressed"
    none = f"--language none {QUICK} --out {out}"
    done = diptych(f"analyse stress {run_folder} --perturb synonyms,distraction {none}")
    done.shows("Could not be run", "synonym-noun needs a", "synonym-adjective needs a")
    assert "synonym-noun" in (out / "report.html").read_text()
    diptych(f"analyse stress {run_folder} --perturb synonym-noun {none}", refused="synonym-noun needs a")


def test_other_data_by_its_place_and_options_by_name(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "stressed"
    done = diptych(
        f"analyse stress {run_folder}/best {scenes_folder} --split val --perturb occlusion,blur --set "
        f"blur.severity=1 --gallery all {QUICK} --out {out}"
    )
    assert "80 over a gallery of 80 pictures of the whole collection" in done.out
    found = StressResult.open(out)
    assert found.protocol["split"] == "val"
    assert found.row("blur").options["severity"] == 1
    assert found.row("occlusion").queries == 16


def test_without_out_a_run_holds_its_own(diptych: Command, run_folder: Path) -> None:
    diptych(f"analyse stress {run_folder} --perturb distraction-true {QUICK}")
    folders = list((run_folder / "stress").iterdir())
    assert [folder.name.rpartition("-")[2] for folder in folders] == ["test"]
    assert (folders[0] / "report.html").is_file()
    assert not (folders[0] / "embeddings").exists()  # those of the run's evaluation


def test_what_is_no_stress_run_has_no_page(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "stress.json").write_text('{"format": 2, "state": "running"}')
    diptych(f"report {tmp_path}", failed="holds something else, expected stress")


def test_two_models(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    out = tmp_path / "comparison.json"
    command = f"compare {stressed}/letters {stressed}/words --samples 50 --flips 199 --out {out}"
    done = diptych(command)
    done.shows("rsum: words against letters", "nDCG_CM@10: words against letters")
    done.shows("Not run for all models", "words: not run", "not seen")
    done.shows("seeds 0, 1; compat none", "Holm over 4 comparisons")
    done.shows(f"open {tmp_path / 'stress-comparison.html'}")
    line = next(line for line in done.out.splitlines() if line.strip().startswith("reversed"))
    written = json.loads(out.read_text())
    row = next(row for row in written["rows"] if (row["name"], row["measure"]) == ("reversed", "rsum"))
    one = row["differences"]["words"]
    assert f"{one['first']['difference']:+.1f} (of {one['first']['clean']:.1f}, " in line
    assert f"{one['difference']:+.1f} (0 to {one['high']:+.1f})" in line
    assert one["low"] == 0
    assert one["second"]["difference"] == 0
    page = (tmp_path / "stress-comparison.html").read_bytes()
    assert diptych(command).out == done.out
    assert (tmp_path / "stress-comparison.html").read_bytes() == page


def test_measures_baseline_and_correction(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    done = diptych(
        f"compare {stressed}/letters {stressed}/words --measures R@1,R@5 --baseline 1 --samples 0 "
        f"--flips 99 --correction none --seed 3 --out {tmp_path}/c.json"
    )
    assert "R@1: letters against words" in done.out
    done.hides("(95 %)", "Holm")
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["baseline"] == "words"
    assert {row["measure"] for row in written["rows"]} == {"R@1", "R@5"}
    assert (tmp_path / "stress-c.html").is_file()


def test_a_model_against_itself(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    shutil.copytree(stressed / "words", tmp_path / "twin")
    out = tmp_path / "comparison.json"
    diptych(f"compare {stressed}/words {tmp_path}/twin --samples 50 --flips 199 --out {out}")
    rows = json.loads((tmp_path / "comparison.json").read_text())["rows"]
    assert {(row["differences"]["twin"]["difference"], row["differences"]["twin"]["p"]) for row in rows} == {
        (0, 1)
    }


def test_all_or_none_are_stress_runs(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    line = f"compare {stressed}/letters {tmp_path}/run --out {tmp_path}/comparison.json"
    diptych(line, refused=("is a stress run and", f"diptych analyse stress {tmp_path / 'run'}"))
    shutil.copytree(stressed / "words", tmp_path / "run" / "stress" / "painted-test")
    diptych(line, refused=f"give {tmp_path / 'run' / 'stress' / 'painted-test'}")
