"""Sparse heads: sparsify, terms, explain, index, search; of runs and of rows whose encoder is not there."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK_HEAD, Command, Done
from PIL import Image

from diptych.core.files import write_json
from diptych.core.locking import exclusive_folder
from diptych.core.reading import read_json
from diptych.encoders.embeddings import SparseEmbeddings
from diptych.sparse import SparseFolder


def test_sparsify_a_run(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.npz"
    np.savez(vectors, words=np.array(["red", "star"]), vectors=np.eye(2, dtype=np.float32))
    out = tmp_path / "sparse"
    done = diptych(f"sparse train {run_folder} {QUICK_HEAD} --eta 1e-4 --word-vectors {vectors} --out {out}")
    done.shows("t2i R@5", "kept", "FLOPs", "Exact@20", "Semantic@20", "η 0.0001, expansion c", "split test")
    done.shows(f"open {out / 'report.html'}")
    page = (out / "report.html").read_text()
    assert "the caption" in page.lower()
    assert f"diptych sparse train {run_folder} --out {out} --eta 0.0001 {QUICK_HEAD}" in page
    for file in ("sparse.json", "metrics.jsonl", "head", "rows/test", "measures/test.npz"):
        assert (out / file).exists(), file
    again = diptych(f"sparse train {run_folder} {QUICK_HEAD} --eta 1e-4 --out {out}")
    assert again.out.splitlines()[0] == done.out.splitlines()[0]
    diptych(f"sparse train {run_folder} {QUICK_HEAD} --eta 1e-2 --out {out}", failed="eta")


def test_embeddings_of_one_split_lead_to_the_others(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    diptych(f"embed {run_folder} --split val --out {tmp_path}/e")
    done = diptych(f"sparse train {tmp_path}/e {QUICK_HEAD} --test none --out {tmp_path}/s")
    assert "val split" in done.out


def test_terms_of_a_split_of_ids_and_of_sentences(
    diptych: Command, head_folder: Path, tmp_path: Path
) -> None:
    done = diptych(f"sparse terms {head_folder} -n 3 -k 4 --sheet {tmp_path}/t.png")
    assert f"drawn in {tmp_path / 't.png'}" in done.out
    with Image.open(tmp_path / "t.png") as sheet:
        assert sheet.size[0] > 300
    named = diptych(f"sparse terms {head_folder} 'a red star' -k 100")
    assert "red*" in named.out or "star*" in named.out


def test_explain_a_sentence_and_one_item(diptych: Command, head_folder: Path, tmp_path: Path) -> None:
    done = diptych(f"sparse explain {head_folder} 'a red star' --sheet {tmp_path}/w.png -k 2")
    assert "of the score" in done.out
    assert (tmp_path / "w.png").is_file()
    name = done.out.split("1. ")[1].split(",")[0]
    one = diptych(f"sparse explain {head_folder} 'a red star' --item {name}")
    assert name in one.out


def test_index_and_search_sparse_rows(diptych: Command, head_folder: Path, tmp_path: Path) -> None:
    indexed = diptych(f"index {head_folder} --out {tmp_path}/i")
    assert "16 images of scenes, engine inverted" in indexed.out
    found = diptych(f"search {tmp_path}/i 'a red star' -k 2")
    assert f"diptych sparse explain {tmp_path / 'i'}" in found.out
    diptych(f"sparse explain {tmp_path}/i 'a red star' -k 1")


def test_a_sentence_searches_with_its_own_terms(diptych: Command, head_folder: Path, tmp_path: Path) -> None:
    """Alone it finds nothing by terms it lacks; of a cascade only the first stage is so, and scores are whole."""
    for engine in ("inverted", "cascade"):
        diptych(f"index {head_folder} --engine {engine} --out {tmp_path}/{engine}")
        done = diptych(
            f"search {tmp_path}/{engine} zzz -k 2 --own-terms"
        )  # no term of it is in the vocabulary
        assert "1 of 1 queries have fewer (the fewest: 0)" in done.out

    def best(engine: str, *more: str) -> str:
        done = diptych(f"search {tmp_path}/{engine} 'a red star' -k 1", *more)
        return done.out.split("caption")[1].split("\n")[2].split()[1]

    assert float(best("inverted", "--own-terms")) < float(best("inverted"))
    assert float(best("cascade", "--own-terms")) > float(best("inverted", "--own-terms"))


def test_an_index_of_another_head_is_refused(
    diptych: Command, run_folder: Path, head_folder: Path, tmp_path: Path
) -> None:
    diptych(f"index {head_folder} --out {tmp_path}/i")
    diptych(f"sparse train {run_folder} {QUICK_HEAD} --eta 1 --out {tmp_path}/s")
    diptych(f"search {tmp_path}/i 'a red star' --model {tmp_path}/s", failed="encoder")


def test_info_knows_what_sparsify_leaves(diptych: Command, head_folder: Path) -> None:
    for place, kind in (
        ("", "sparse"),
        ("rows/test", "sparsified collection"),
        ("rows/test/images", "sparse embeddings"),
    ):
        done = diptych("info", head_folder / place)
        assert kind in done.out


def test_a_head_outlives_its_folder_being_moved(diptych: Command, head_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(head_folder, tmp_path / "moved")
    diptych(f"sparse terms {tmp_path}/moved -n 1")


_WORDS = ("dog", "cat", "man", "snow", "beach", "red", "bike", "runs")
QUICK = "--set training.epochs=2 --set head.width=8 --set training.batch_size=16"


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


def _sparsify(diptych: Command, folder: Path, out: Path, *more: object, failed: str = "") -> Done:
    data, rows = folder / "dataset.json", folder / "rows"
    return diptych(f"sparse train rows:{rows} --data {data} --out {out} {QUICK}", *more, failed=failed)


@pytest.fixture
def made(diptych: Command, tmp_path: Path) -> Path:
    """A head of rows, in a folder that holds the dense rows too."""
    _dataset(tmp_path / "d")
    _sparsify(diptych, tmp_path / "d", tmp_path / "s")
    return tmp_path / "s"


def test_rows_of_nobody_go_into_the_folder_and_are_found_again(
    diptych: Command, made: Path, tmp_path: Path
) -> None:
    assert (made / "embeddings" / "things-train" / "images").is_dir()
    _sparsify(diptych, tmp_path / "d", made)
    _sparsify(diptych, tmp_path / "d", made, "--eta", "1e-2", failed="was begun with loss.eta")


def test_word_vectors_are_a_file_of_word_vectors(diptych: Command, tmp_path: Path) -> None:
    _dataset(tmp_path / "d")
    (tmp_path / "v.txt").write_text("dog 1 2\n")
    given, said = ("--word-vectors", tmp_path / "v.txt"), "v.txt is not a file of word vectors"
    _sparsify(diptych, tmp_path / "d", tmp_path / "s", *given, failed=said)


def test_another_process_in_the_folder_is_refused(diptych: Command, made: Path, tmp_path: Path) -> None:
    for folder in (made / "embeddings", made):
        with exclusive_folder(folder):
            _sparsify(diptych, tmp_path / "d", made, failed="another process is working in")


def test_without_an_encoder_its_own_captions_and_pictures_are_asked_with(
    diptych: Command, made: Path
) -> None:
    name = SparseEmbeddings.open(made / "rows" / "test" / "texts").ids[2]
    done = diptych(f"sparse explain {made} {name} -k 1")
    assert "of the score" in done.out
    done = diptych(f"sparse explain {made} 33.jpg --of images -k 1")
    for verb in ("explain", "terms"):
        diptych(f"sparse {verb} {made} 'a sentence [/bold] of nobody'", refused="give ids")


def test_a_next_step_is_printed_as_it_is_typed(diptych: Command, made: Path) -> None:
    odd = made.rename(made.with_name("[bold]"))
    done = diptych(f"sparse terms {odd} -n 1")
    assert f"diptych sparse explain {shlex.quote(str(odd))}" in done.out


def test_rows_of_another_split_are_made_when_asked_for(diptych: Command, made: Path) -> None:
    diptych(f"sparse terms {made} --split val", refused=("only of test", "diptych embed", "--split val"))
    diptych(f"embed {made} --split val")
    diptych(f"sparse terms {made} --split val -n 1")
    shutil.rmtree(made / "rows")
    diptych(f"index {made}").shows("8 images of things")


@pytest.mark.parametrize(
    "content", ["{}", "[]", "x", '{"split": "test"}', '{"origin": {"model": 1, "data": 2}, "split": "test"}']
)
def test_a_damaged_marker_is_told(content: str, diptych: Command, made: Path) -> None:
    (made / "sparse.json").write_text(content)
    diptych(f"sparse terms {made}", failed=("sparse.json", "fix: "))


def test_a_folder_that_was_moved_away_is_named(diptych: Command, made: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    head = SparseFolder.open(made)
    replace(head, origin=replace(head.origin, model=str(gone))).save()
    embedded = made / "embeddings" / "things-train"
    write_json(embedded / "origin.json", {**read_json(embedded / "origin.json"), "model": str(gone)})
    for arguments in (("explain", made, "a dog"), ("train", embedded, "--out", tmp_path / "new")):
        diptych("sparse", *arguments, refused=f"was made with {gone}")
    (embedded / "origin.json").write_text("{}")
    diptych(f"sparse train {embedded} --out {tmp_path}/new", code=1)
