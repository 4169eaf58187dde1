"""``diptych perturb``: files, tables, the list, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from diptych.analysis.perturbations import PERTURBATIONS, TextPerturbation, perturb_captions
from diptych.data.readers import read_collection


def test_a_dataset_s_captions(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = diptych(
        "perturb", scenes_folder, "--perturb", "character-swap", "--perturb", "shuffle-nouns-and-adjectives",
        "--seeds", 2, "--seed", 3, "--set", "character-swap.edits=2", "-n", 1, "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
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
    assert f"{test.name}, test: {len(test.captions)} captions; language scenes: " in done.out
    assert f"written to {out}" in done.out
    assert f"next: diptych stress MODEL {scenes_folder} --perturb character-swap" in done.out


def test_captions_of_a_text_file_as_published(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "captions.txt"
    file.write_text(
        "An amphibious plane is floating in front of the London Bridge.\na b c\n", encoding="utf-8"
    )
    done = diptych("perturb", file, "--perturb", "character-swap", "--compat", "published")
    assert done.code == 0, done.err
    assert "An amphiboius plane is floating" in done.out
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "character-swap 42 1 2 the result is the caption itself 1" in rows
    assert "captions: 2 captions; compat published" in done.out
    assert f"next: diptych perturb {file} --perturb character-swap --out FOLDER" in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["captions.txt"]


def test_long_captions_are_shown_around_the_change(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("- " * 400 + "horses" + " -" * 400, encoding="utf-8")
    done = diptych("perturb", file, "--perturb", "missing-character", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "horses" in done.out
    assert done.out.count("-") < 600
    assert f"next: less {tmp_path / 'out' / 'missing-character-0.jsonl'}" in done.out


def test_the_list_shows_every_declaration(diptych: Command) -> None:
    done = diptych("perturb", "--list")
    assert done.code == 0, done.err
    for one in PERTURBATIONS:
        assert one.name in done.out
    assert "edits=1 keyboard=qwerty" in done.out
    assert "word order: the same words in another order" in done.out


def test_pictures_are_left_out_of_all(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "c.txt"
    file.write_text("cat\n", encoding="utf-8")
    done = diptych("perturb", file, "--perturb", "missing-character, pictures")
    assert done.code == 0, done.err
    assert "left out, for they change pictures: blur" in done.out
    assert "published form" not in done.out


def test_what_was_never_published_is_left_out_of_a_group(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "two words.txt"
    file.write_text("cat\n", encoding="utf-8")
    done = diptych("perturb", file, "--perturb", "typos", "--compat", "published")
    assert done.code == 0, done.err
    assert "left out, for they have no published form: recognition-errors, typing-errors" in done.out
    assert f"next: diptych perturb '{file}' --perturb typos --out FOLDER" in done.out
    assert "left out" not in diptych("perturb", file, "--perturb", "typos").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no captions given"),
        (("FILE", "--perturb", "character-swop"), "did you mean 'character-swap'?"),
        (("FILE", "--perturb", "blur"), "blur: of pictures, not of captions"),
        (("FILE", "--perturb", "typing-errors", "--compat", "published"), "has no published form"),
        (("FILE", "--perturb", "typos,typing-errors", "--compat", "published"), "has no published form"),
        (("FILE", "--perturb", "meaning", "--compat", "published"), "has no published form"),
        (("FILE", "--perturb", "typos", "--set", "edits=2"), "is not NAME.KEY=VALUE"),
        (("FILE", "--perturb", "typos", "--set", "character-swap.edits=0"), "option 'edits'"),
        (("FILE", "--perturb", "typos", "--set", "distraction-true.edits=0"), "was not asked for"),
        (("FILE", "--perturb", "typos", "--split", "test"), "has captions alone"),
        (("FILE", "--perturb", "word order", "--language", "none"), "needs a part-of-speech tagger"),
        (("FILE", "--perturb", "typos", "--out", "HERE"), "holds other things"),
    ],
)
def test_what_is_refused(diptych: Command, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    file = tmp_path / "c.txt"
    file.write_text("cat\n", encoding="utf-8")
    places = {"FILE": str(file), "HERE": str(tmp_path)}
    done = diptych("perturb", *(places.get(argument, argument) for argument in arguments))
    assert done.code == 2
    assert message in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["c.txt"]
