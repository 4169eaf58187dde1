"""``diptych sparsify``, ``terms``, ``explain``, and index and search over what they are made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from PIL import Image

_QUICK = ("--set", "training.epochs=2", "--set", "head.width=16", "--set", "training.batch_size=32")


@pytest.fixture(scope="module")
def sparse_folder(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A head over the captions of a tiny run on scenes."""
    import sys

    from diptych.cli import main

    folder = tmp_path_factory.mktemp("sparse") / "head"
    before = sys.argv
    sys.argv = ["diptych", "sparsify", str(run_folder), *_QUICK, "--out", str(folder)]
    try:
        with pytest.raises(SystemExit) as caught:
            main()
    finally:
        sys.argv = before
    assert not caught.value.code
    return folder


def test_sparsify_a_run(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.npz"
    np.savez(vectors, words=np.array(["red", "star"]), vectors=np.eye(2, dtype=np.float32))
    out = tmp_path / "sparse"
    done = diptych("sparsify", run_folder, *_QUICK, "--eta", "1e-4", "--word-vectors", vectors, "--out", out)
    assert done.code == 0, done.err
    for word in (
        "t2i R@5",
        "kept",
        "FLOPs",
        "Exact@20",
        "Semantic@20",
        "η 0.0001, expansion c",
        "split test",
    ):
        assert word in done.out, word
    assert f"open {out / 'report.html'}" in done.out
    assert "the caption" in (out / "report.html").read_text().lower()
    for file in ("sparse.json", "options.json", "metrics.jsonl", "head", "rows/test", "measures/test.npz"):
        assert (out / file).exists(), file
    again = diptych("sparsify", run_folder, *_QUICK, "--eta", "1e-4", "--out", out)
    assert again.code == 0, again.err
    assert again.out.splitlines()[0] == done.out.splitlines()[0]
    other = diptych("sparsify", run_folder, *_QUICK, "--eta", "1e-2", "--out", out)
    assert other.code == 1
    assert "eta" in other.err


def test_embeddings_of_one_split_lead_to_the_others(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    assert diptych("embed", run_folder, "--split", "val", "--out", tmp_path / "e").code == 0
    done = diptych("sparsify", tmp_path / "e", *_QUICK, "--test", "none", "--out", tmp_path / "s")
    assert done.code == 0, done.err
    assert "val split" in done.out


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (("--set", "loss.ets=1"), "unknown key 'loss.ets'", "known there: eta"),
        (("--expansion", "x"), "expansion.mode", ""),
        (("--train", "trian"), "no split 'trian'", "--train"),
        (("--word-vectors", "none.npz"), "none.npz", ""),
        (("--mlm", "no-such-folder-or-model"), "no-such-folder-or-model", ""),
    ],
)
def test_what_is_refused(
    diptych: Command,
    run_folder: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
    fix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = diptych("sparsify", run_folder, *_QUICK, *arguments, "--out", tmp_path / "s")
    assert done.code in (1, 2)
    assert message in done.err
    assert fix in done.err
    assert not (tmp_path / "s" / "sparse.json").exists()


def test_terms_of_a_split_of_ids_and_of_sentences(
    diptych: Command, sparse_folder: Path, tmp_path: Path
) -> None:
    done = diptych("terms", sparse_folder, "-n", 3, "-k", 4, "--sheet", tmp_path / "t.png")
    assert done.code == 0, done.err
    assert f"drawn in {tmp_path / 't.png'}" in done.out
    with Image.open(tmp_path / "t.png") as sheet:
        assert sheet.size[0] > 300
    named = diptych("terms", sparse_folder, "a red star", "-k", 100)
    assert named.code == 0, named.err
    assert "red*" in named.out or "star*" in named.out
    assert diptych("terms", sparse_folder, " ").code == 2


def test_explain_a_sentence_and_one_item(diptych: Command, sparse_folder: Path, tmp_path: Path) -> None:
    done = diptych("explain", sparse_folder, "a red star", "--sheet", tmp_path / "w.png", "-k", 2)
    assert done.code == 0, done.err
    assert "of the score" in done.out
    assert (tmp_path / "w.png").is_file()
    name = done.out.split("1. ")[1].split(",")[0]
    one = diptych("explain", sparse_folder, "a red star", "--item", name)
    assert one.code == 0, one.err
    assert name in one.out
    wrong = diptych("explain", sparse_folder, "a red star", "--item", "nothing")
    assert wrong.code == 2
    assert "'nothing'" in wrong.err
    assert diptych("explain", sparse_folder, "a red star", "--of", "both").code == 2


def test_index_and_search_sparse_rows(diptych: Command, sparse_folder: Path, tmp_path: Path) -> None:
    indexed = diptych("index", sparse_folder, "--out", tmp_path / "i")
    assert indexed.code == 0, indexed.err
    assert "16 images of scenes, engine inverted" in indexed.out
    found = diptych("search", tmp_path / "i", "a red star", "-k", 2)
    assert found.code == 0, found.err
    assert f"diptych explain {tmp_path / 'i'}" in found.out
    why = diptych("explain", tmp_path / "i", "a red star", "-k", 1)
    assert why.code == 0, why.err
    dense = diptych("index", sparse_folder, "--engine", "hnsw", "--out", tmp_path / "j")
    assert dense.code == 2
    assert "inverted" in dense.err
    assert diptych("explain", tmp_path, "a red star").code == 2


def test_a_sentence_searches_with_its_own_terms(
    diptych: Command, run_folder: Path, sparse_folder: Path, tmp_path: Path
) -> None:
    """Alone it finds nothing by terms it lacks; of a cascade only the first stage is so, and scores are whole."""
    for engine in ("inverted", "cascade"):
        assert diptych("index", sparse_folder, "--engine", engine, "--out", tmp_path / engine).code == 0
    nothing = "zzz"  # no term of it is in the vocabulary
    for engine in ("inverted", "cascade"):
        done = diptych("search", tmp_path / engine, nothing, "-k", 2, "--own-terms")
        assert done.code == 0, done.err
        assert "1 of 1 queries have fewer (the fewest: 0)" in done.out

    def best(engine: str, *more: str) -> str:
        done = diptych("search", tmp_path / engine, "a red star", "-k", 1, *more)
        assert done.code == 0, done.err
        return done.out.split("caption")[1].split("\n")[2].split()[1]

    assert float(best("inverted", "--own-terms")) < float(best("inverted"))
    assert float(best("cascade", "--own-terms")) > float(best("inverted", "--own-terms"))
    assert diptych("index", run_folder, "--out", tmp_path / "dense").code == 0
    refused = diptych("search", tmp_path / "dense", "a red star", "--own-terms")
    assert refused.code == 2
    assert "a dense encoder" in refused.err


def test_an_index_of_another_head_is_refused(
    diptych: Command, run_folder: Path, sparse_folder: Path, tmp_path: Path
) -> None:
    assert diptych("index", sparse_folder, "--out", tmp_path / "i").code == 0
    assert diptych("sparsify", run_folder, *_QUICK, "--eta", 1, "--out", tmp_path / "s").code == 0
    done = diptych("search", tmp_path / "i", "a red star", "--model", tmp_path / "s")
    assert done.code == 1
    assert "encoder" in done.err


def test_info_knows_what_sparsify_leaves(diptych: Command, sparse_folder: Path) -> None:
    for place, kind in (
        ("", "sparse head"),
        ("rows/test", "sparsified collection"),
        ("rows/test/images", "sparse image embeddings"),
    ):
        done = diptych("info", sparse_folder / place)
        assert done.code == 0, done.err
        assert kind in done.out


def test_a_head_outlives_its_folder_being_moved(
    diptych: Command, sparse_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(sparse_folder, tmp_path / "moved")
    assert diptych("terms", tmp_path / "moved", "-n", 1).code == 0
