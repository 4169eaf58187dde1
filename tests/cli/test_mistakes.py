"""Usual mistakes: one line with both values, and a fix that works when it is pasted.

A case is a command line, what its error has to say (``&`` between), and the command that puts it right. Whatever
that command has and the wrong one has not must have been printed: a person could not know it otherwise.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Command

CASES = """
evalute run => 'evalute' & 'evaluate' => evaluate run
evaluate rnu => 'rnu' & run => evaluate run
evaluate run --spilt test => --spilt & --split => evaluate run --split test
evaluate run --split tset => 'tset' & 'test' => evaluate run --split test
evaluate run --measure recall@5 => 'recall@5' & 'R@5' => evaluate run --measure R@5
evaluate run --measure r-precision => 'r-precision' & 'R-precision' => evaluate run --measure R-precision
evaluate emb --split test => emb is embedded already & --split => evaluate emb
evaluate broken --data scenes --out new => broken/model.safetensors & copy it again => evaluate run/best --data scenes --out new
train scnes => 'scnes' & 'scenes' => info recipes
train tiny.toml --out new --set objective.name=infonse => 'infonse' & 'infonce' => train tiny.toml --out new --set objective.name=infonce
train tiny.toml --out new --set batches.sise=8 => 'batches.sise' & 'size' => train tiny.toml --out new --set batches.size=8
train tiny.toml --out run => run already holds a run => train --resume run
train tiny.toml --out pairs.csv => pairs.csv is a file & --out => train tiny.toml --out new
train --resume emb => emb holds no run => info emb
embed run --data pairs.csv --images pictures --out new => image_column & caption_column & Bild, Beschreibung => embed run --data pairs.csv --images pictures --reader-option image_column=Bild --reader-option caption_column=Beschreibung --out new
embed run --data pears.csv --out new => pears.csv does not exist & pairs.csv => info pairs.csv --reader-option image_column=Bild --reader-option caption_column=Beschreibung
embed run --out other => other holds other things & --out => embed run --out new
index run --engine hsnw --out new => 'hsnw' & 'hnsw' => index run --engine hnsw --out new
index head --engine hnsw --out new => dense & sparse & inverted => index head --engine inverted --out new
search run star => run holds no index & index run => index run
search emb star => emb holds no index & index emb => index emb
search idx star --model head => 16 & 192 => search idx star
search idx gone.jpg => gone.jpg does not exist => search idx star
search ixd star => ixd does not exist & idx => search idx star
search idx => --queries & --interactive => search idx --queries queries.txt
report emb => emb holds no run => report run
compare run emb => run was not evaluated & diptych evaluate run => evaluate run
sparse terms run => run holds no sparse head & sparse train run => sparse train run --out new2 {quick}
info objektives => 'objektives' & 'objectives' => info objectives
data show coc => 'coc' & 'coco' => data show coco
study show ltd.table-9 => 'ltd.table-9' & 'ltd.table-' => study list
analyse stress run --perturb typo --out new => 'typo' & 'typos' => info perturbations
analyse granularity sceens => sceens does not exist & scenes => analyse granularity scenes
analyse cocos run --objective tripelt => 'tripelt' & 'triplet' => analyse cocos run --objective triplet
adapt run --pairs 1000 --out new => 1,000 & 48 => adapt run --pairs 48 --out new
"""


@pytest.fixture(scope="module")
def places(
    tmp_path_factory: pytest.TempPathFactory,
    run_folder: Path,
    scenes_folder: Path,
    recipe_file: Path,
    embedded: Path,
    head_folder: Path,
    index: Path,
) -> Path:
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
    (folder / "other").mkdir()
    (folder / "other" / "precious.txt").write_text("years of work")
    return folder


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_mistake(
    case: str, places: Path, diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, says, right = case.format(quick="--set training.epochs=1 --set head.width=8").split(" => ")
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
    known = {*shlex.split(wrong), "new", "new2", "info", "star", "scenes", "run", "--set", "test"}
    unknown = [word for word in shlex.split(right) if word not in known and not _printed(word, done.err)]
    assert not unknown, (unknown, done.err)
    diptych(right)


def _printed(word: str, text: str) -> bool:
    """Return whether a reader of the text could write the word."""
    parts: list[Any] = re.split(r"=", word)
    return all(part in text for part in parts)
