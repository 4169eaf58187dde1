"""Usual mistakes: one line with both values, and a fix that works when it is pasted.

A case is a command line, what its error says (``&`` between), and then the command that puts it right. Whatever that
command has and the wrong one has not must have been printed: a person could not know it otherwise.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")

QUICK = "--set training.epochs=1 --set head.width=8 --set training.batch_size=32"
OWN = set(["new", "--out", "run", "run/best", "scenes", "star", "queries.txt", "info", "--set", "--split"])
OWN |= set(re.split("[ =]", QUICK))
"""What a user knows without being told."""


@pytest.fixture(scope="module")
def places(tmp_path_factory, run_folder, scenes_folder, recipe_file, embedded, head_folder, index):
    """A folder as a person has it after an afternoon, with a table of own pictures."""
    folder = tmp_path_factory.mktemp("afternoon")
    made = {"run": run_folder, "scenes": scenes_folder, "emb": embedded, "head": head_folder, "idx": index}
    for name, source in made.items():
        shutil.copytree(source, folder / name)
    shutil.copytree(run_folder / "best", folder / "broken")
    with (folder / "broken" / "model.safetensors").open("r+b") as weights:
        weights.truncate(1000)
    shutil.copy(recipe_file, folder / "tiny.toml")
    (folder / "queries.txt").write_text("a red star\n")
    (folder / "pictures").mkdir()
    pictures = sorted(scenes_folder.rglob("*.png"))[:2]
    for name, picture in zip("ab", pictures, strict=True):
        shutil.copy(picture, folder / "pictures" / f"{name}.png")
    (folder / "pairs.csv").write_text("Bild,Beschreibung,likes\na.png,a red star,3\nb.png,a blue box,4\n")
    (folder / "good.csv").write_text("image,caption\na.png,a red star\nb.png,a blue box\n")
    return folder


@pytest.mark.parametrize(
    "case", re.split(r"\n(?=\S)", CASES.strip()), ids=lambda case: case.partition("\n")[0]
)
def test_mistake(case, places, diptych, tmp_path, monkeypatch):
    wrong, says, right = re.split(r"\s+(?:says|then): ", case.format(quick=QUICK))
    work = tmp_path / "work"
    shutil.copytree(places, work)
    monkeypatch.chdir(work)
    before = sorted(work.rglob("*"))
    done = diptych(wrong, code=None)
    assert done.code in (1, 2)
    lines = done.err.strip().splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["error", "fix"], done.err
    done.says(*says.split(" & "))
    assert sorted(work.rglob("*")) == before  # nothing was written
    unknown = [word for word in _words(right) if word not in {*OWN, *_words(wrong)} and word not in done.err]
    assert not unknown, (unknown, done.err)
    diptych(" ".join(right.split()))


def _words(line):
    """Return what a command names; keys and values apart."""
    return [word for word in re.split(r"[\s=]+", line) if word]
