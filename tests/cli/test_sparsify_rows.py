"""``diptych sparsify`` on rows made elsewhere, whose encoder is not there, and on folders that are not whole."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Command, Done

from diptych.core.files import write_json
from diptych.core.locking import exclusive_folder
from diptych.core.reading import read_json

_WORDS = ("dog", "cat", "man", "snow", "beach", "red", "bike", "runs")
_QUICK = ("--set", "training.epochs=2", "--set", "head.width=8", "--set", "training.batch_size=16")


def _dataset(folder: Path, images: int = 40) -> tuple[Path, Path]:
    """A data set without pictures, and a folder of rows of it."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(len(_WORDS), 6))
    entries, pictures, captions = [], [], []
    for number in range(images):
        said = random.permutation(len(_WORDS))[:3]
        split = "train" if number < 24 else "val" if number < 32 else "test"
        sentence = {"raw": " ".join(_WORDS[word] for word in said), "sentid": number}
        entries.append(
            {"filename": f"{number}.jpg", "imgid": number, "split": split, "sentences": [sentence]}
        )
        pictures.append(vectors[said].sum(axis=0))
        captions.append(vectors[said[:2]].sum(axis=0))
    (folder / "rows").mkdir(parents=True)
    (folder / "dataset.json").write_text(json.dumps({"images": entries, "dataset": "things"}))
    for kind, rows in (("images", pictures), ("texts", captions)):
        np.save(folder / "rows" / f"{kind}.npy", np.array(rows, dtype=np.float32))
        (folder / "rows" / f"{kind}.txt").write_text("\n".join(map(str, range(images))))
    return folder / "dataset.json", folder / "rows"


def _sparsify(diptych: Command, folder: Path, out: Path, *more: object) -> Done:
    data, rows = folder / "dataset.json", folder / "rows"
    return diptych("sparsify", f"rows:{rows}", "--data", data, "--out", out, *_QUICK, *more)


@pytest.fixture
def made(diptych: Command, tmp_path: Path) -> Path:
    """A head of rows, in a folder that holds the dense rows too."""
    _dataset(tmp_path / "d")
    done = _sparsify(diptych, tmp_path / "d", tmp_path / "s")
    assert done.code == 0, done.err
    return tmp_path / "s"


def test_rows_of_nobody_go_into_the_folder_and_are_found_again(
    diptych: Command, made: Path, tmp_path: Path
) -> None:
    assert (made / "embeddings" / "things-train" / "images").is_dir()
    again = _sparsify(diptych, tmp_path / "d", made)
    assert again.code == 0, again.err
    other = _sparsify(diptych, tmp_path / "d", made, "--eta", "1e-2")
    assert other.code == 1
    assert "was begun with loss.eta" in other.err


def test_what_cannot_be_is_said_before_rows_are_made(diptych: Command, tmp_path: Path) -> None:
    _dataset(tmp_path / "d")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for out, more, word in (
        ("mine", (), "other things"),
        ("s", ("--eta", "inf"), "finite"),
        ("s", ("--mlm", ""), "vocabulary.source"),
        ("s", ("--set", f"head.width={10**12}"), "head.width"),
    ):
        done = _sparsify(diptych, tmp_path / "d", tmp_path / out, *more)
        assert done.code == 2, done.err
        assert word in done.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    assert not (tmp_path / "s").exists()


def test_word_vectors_are_a_file_of_word_vectors(diptych: Command, tmp_path: Path) -> None:
    _dataset(tmp_path / "d")
    (tmp_path / "v.txt").write_text("dog 1 2\n")
    done = _sparsify(diptych, tmp_path / "d", tmp_path / "s", "--word-vectors", tmp_path / "v.txt")
    assert done.code == 1
    assert "v.txt is not a file of word vectors" in done.err


def test_another_process_in_the_folder_is_refused(diptych: Command, made: Path, tmp_path: Path) -> None:
    for folder in (made / "embeddings", made):
        with exclusive_folder(folder):
            done = _sparsify(diptych, tmp_path / "d", made)
        assert done.code == 1
        assert "another process is working in" in done.err


def test_without_an_encoder_its_own_captions_and_pictures_are_asked_with(
    diptych: Command, made: Path
) -> None:
    name = read_json(made / "rows" / "test" / "texts" / "ids.json")[2]
    done = diptych("explain", made, name, "-k", "1")
    assert done.code == 0, done.err
    assert "of the score" in done.out
    done = diptych("explain", made, "33.jpg", "--of", "images", "-k", "1")
    assert done.code == 0, done.err
    for verb in ("explain", "terms"):
        done = diptych(verb, made, "a sentence [/bold] of nobody")
        assert done.code == 2
        assert "ask by ids" in done.err


def test_a_next_step_is_printed_as_it_is_typed(diptych: Command, made: Path) -> None:
    odd = made.rename(made.with_name("[bold]"))
    done = diptych("terms", odd, "-n", "1")
    assert done.code == 0, done.err
    assert f"diptych explain {shlex.quote(str(odd))}" in done.out


def test_rows_of_another_split_are_asked_for_with_a_way_to_make_them(diptych: Command, made: Path) -> None:
    done = diptych("terms", made, "--split", "val")
    assert done.code == 2
    assert "only of test" in done.err
    assert "--test val" in done.err
    shutil.rmtree(made / "rows")
    done = diptych("index", made)
    assert done.code == 2
    assert "holds no rows of 'test'" in done.err


@pytest.mark.parametrize(
    "content", ["{}", "[]", "x", '{"split": "test"}', '{"origin": {"model": 1, "data": 2}, "split": "test"}']
)
def test_a_damaged_marker_is_told(content: str, diptych: Command, made: Path) -> None:
    (made / "sparse.json").write_text(content)
    done = diptych("terms", made)
    assert done.code == 1
    assert "sparse.json" in done.err
    assert "fix: " in done.err


def test_a_folder_that_was_moved_away_is_named(diptych: Command, made: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    said = read_json(made / "sparse.json")
    write_json(made / "sparse.json", {**said, "origin": {**said["origin"], "model": str(gone)}})
    embedded = made / "embeddings" / "things-train"
    write_json(embedded / "origin.json", {**read_json(embedded / "origin.json"), "model": str(gone)})
    for arguments in (("explain", made, "a dog"), ("sparsify", embedded, "--out", tmp_path / "new")):
        done = diptych(*arguments)
        assert done.code == 2
        assert f"was made with {gone}" in done.err
    (embedded / "origin.json").write_text("{}")
    assert diptych("sparsify", embedded, "--out", tmp_path / "new").code == 1
