"""Usual mistakes: one line with both values, and a fix that works when it is pasted.

A case is a command line, what its error says (``&`` between), and then the command that puts it right. Whatever that
command has and the wrong one has not must have been printed: a person could not know it otherwise.
"""

from __future__ import annotations

import re
import shutil

import pytest

CASES = """
evalute run
    says: 'evalute' & 'evaluate'
    then: evaluate run
evaluate rnu
    says: 'rnu' & run
    then: evaluate run
evaluate run --spilt test
    says: --spilt & --split
    then: evaluate run --split test
evaluate run --measure recall@5
    says: 'recall@5' & 'R@5'
    then: evaluate run --measure R@5
evaluate broken --data scenes --out new
    says: broken/model.safetensors & copy it again
    then: evaluate run/best --data scenes --out new
train tinny.toml --out new
    says: tinny.toml does not exist & tiny.toml
    then: train tiny.toml --out new
train tiny.toml --out new --set batches.sise=8
    says: 'batches.sise' & 'batches.size'
    then: train tiny.toml --out new --set batches.size=8
train tiny.toml --out pairs.csv
    says: pairs.csv is a file & --out
    then: train tiny.toml --out new
train --resume emb
    says: emb holds no run
    then: info emb
embed run --data pairs.csv --images pictures --out new
    says: image_column & caption_column & Bild, Beschreibung
    then: embed run --data pairs.csv --images pictures --reader-option image_column=Bild --reader-option
        caption_column=Beschreibung --out new
embed run --data goood.csv --images pictures --out new
    says: goood.csv does not exist & good.csv
    then: embed run --data good.csv --images pictures --out new
index head --engine hnsw --out new
    says: dense & sparse & inverted
    then: index head --engine inverted --out new
search run star
    says: run holds no index & index run
    then: index run
search idx star --model head
    says: encoder & --model
    then: search idx star
search ixd star
    says: ixd does not exist & idx
    then: search idx star
compare run emb
    says: run was not evaluated & diptych evaluate run
    then: evaluate run
sparse terms run
    says: run holds no sparse head & diptych sparse train run
    then: sparse train run --out new {quick}
data show coc
    says: 'coc' & 'coco'
    then: data show coco
analyse granularity sceens
    says: sceens does not exist & scenes
    then: analyse granularity scenes
adapt run --pairs 1000 --out new
    says: 1,000 & 48
    then: adapt run --pairs 48 --out new
"""

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
