"""Sparse heads: trained, in an encoder's place on other data, and of rows whose encoder is not there."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace

import numpy as np
import pytest
from commands import QUICK_HEAD, command, every_byte
from PIL import Image

from diptych.core.errors import UsageError
from diptych.core.files import write_json
from diptych.core.locking import exclusive_folder
from diptych.core.reading import read_json
from diptych.data import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import SparseEmbeddings
from diptych.evaluation import Result, evaluate
from diptych.index import open_index
from diptych.metrics import GroundTruth
from diptych.sparse.sparsified import SparseEncoder, SparseFolder, SparsifiedCollection

FEW = "--samples 0 --measure R@1 --measure rsum"


@pytest.fixture(scope="module")
def run(run_folder, tmp_path_factory):
    """A run with a head in it."""
    folder = tmp_path_factory.mktemp("world") / "run"
    shutil.copytree(run_folder, folder)
    command(f"sparse train {folder} {QUICK_HEAD} --eta 1e-4")
    return folder


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    """Twelve other scenes, all of them a test split."""
    from diptych.data.scenes import make_scenes

    return make_scenes(tmp_path_factory.mktemp("unseen") / "other", 0, 0, 12, seed=9, size=32, workers=1)


@pytest.fixture(scope="module")
def bags(run, unseen, tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded") / "bags"
    command(f"embed {run}/sparse --data {unseen} --out {folder}")
    return folder


def test_sparsify_a_run(diptych, run_folder, head_folder, tmp_path):
    vectors, out = tmp_path / "vectors.npz", tmp_path / "sparse"
    np.savez(vectors, words=np.array(["red", "star"]), vectors=np.eye(2, dtype=np.float32))
    line = f"sparse train {run_folder} {QUICK_HEAD} --out {out}"
    done = diptych(f"{line} --eta 1e-4 --word-vectors {vectors}")
    done.shows("t2i R@5", "kept", "FLOPs", "Exact@20", "Semantic@20", "η 0.0001, expansion c", "split test")
    done.shows(f"open {out / 'report.html'}")
    page = (out / "report.html").read_text()
    assert "the caption" in page.lower()
    assert f"diptych sparse train {run_folder} --out {out} --eta 0.0001 {QUICK_HEAD}" in page
    for file in ("sparse.json", "metrics.jsonl", "head", "rows/test", "measures/test.npz"):
        assert (out / file).exists(), file
    again = diptych(f"{line} --eta 1e-4")
    assert again.out.splitlines()[0] == done.out.splitlines()[0]
    diptych(f"{line} --eta 1e-2", failed="eta")
    for place, kind in (
        ("", "sparse"),
        ("rows/test", "sparsified collection"),
        ("rows/test/images", "sparse embeddings"),
    ):
        diptych("info", out / place).shows(kind)
    diptych(f"index {head_folder} --out {tmp_path}/i")
    diptych(f"search {tmp_path}/i 'a red star' --model {out}", failed="encoder")


def test_terms_and_explain(diptych, head_folder, tmp_path):
    shutil.copytree(head_folder, tmp_path / "moved")  # a head outlives its folder being moved
    done = diptych(f"sparse terms {tmp_path}/moved -n 3 -k 4 --sheet {tmp_path}/t.png")
    done.shows(f"drawn in {tmp_path / 't.png'}")
    with Image.open(tmp_path / "t.png") as sheet:
        assert sheet.size[0] > 300
    named = diptych(f"sparse terms {head_folder} 'a red star' -k 100")
    assert "red*" in named.out or "star*" in named.out
    line = f"sparse explain {head_folder} 'a red star'"
    done = diptych(f"{line} --sheet {tmp_path}/w.png -k 2")
    done.shows("of the score")
    assert (tmp_path / "w.png").is_file()
    name = done.out.split("1. ")[1].split(",")[0]
    diptych(f"{line} --item {name}").shows(name)


def test_a_sentence_searches_with_its_own_terms(diptych, run_folder, tmp_path):
    """It finds nothing by terms it lacks; of a cascade only the first stage is so, and scores are whole."""
    head = tmp_path / "head"
    diptych(f"sparse train {run_folder} {QUICK_HEAD} --eta 0 --out {head}")  # so that own terms have weights
    for engine in ("inverted", "cascade"):
        done = diptych(f"index {head} --engine {engine} --out {tmp_path}/{engine}")
        done.shows(f"16 images of scenes, engine {engine}")
        done = diptych(f"search {tmp_path}/{engine} zzz -k 2 --own-terms")  # not in the vocabulary
        done.shows("1 of 1 queries have fewer (the fewest: 0)")

    def best(engine, more=""):
        done = diptych(f"search {tmp_path}/{engine} 'a red star' -k 1 {more}")
        done.shows(f"diptych sparse explain {tmp_path / engine}")
        return float(done.out.split("caption")[1].split("\n")[2].split()[1])

    assert best("inverted", "--own-terms") < best("inverted")
    assert best("cascade", "--own-terms") > best("inverted", "--own-terms")


def test_embed_and_evaluate_new_data(diptych, run, unseen, bags, tmp_path):
    done = diptych(f"evaluate {run}/sparse --data {unseen} {FEW} --out {tmp_path}/e")
    done.shows("rsum", "similarity dot", f"diptych index {tmp_path}/e/embeddings")
    found = Result.open(tmp_path / "e" / "evaluation")
    collection, encoder = read_collection(unseen), SparseEncoder.load(run / "sparse")
    images = encoder.encode_images([collection.image(row) for row in range(12)])
    texts = encoder.encode_texts(list(collection.captions))
    truth = GroundTruth.from_caption_image(collection.caption_image, 12)
    expected = evaluate((images @ texts.T).toarray(), None, truth, ["R@1", "rsum"])
    assert found.values() == pytest.approx(expected.values())
    assert found.protocol.about["encoder"] == encoder.fingerprint
    diptych(f"evaluate {bags} {FEW} --out {tmp_path}/again")
    assert Result.open(tmp_path / "again" / "evaluation").values() == found.values()
    diptych(f"evaluate {run}/sparse --data {unseen} --rerank 3", refused="dense encoder")
    opened = SparsifiedCollection.open(bags)
    np.testing.assert_allclose(opened.texts.rows.toarray(), texts.toarray(), atol=1e-5)
    assert (opened.images.encoder, tuple(opened.images.terms)) == (encoder.fingerprint, encoder.terms)
    before = every_byte(bags)
    command(f"embed {run}/sparse --data {unseen} --out {bags}")
    assert every_byte(bags) == before


def test_index_new_data_search_it_and_explain_what_is_found(diptych, run, unseen, bags, tmp_path):
    done = diptych(f"index {run}/sparse --data {unseen} --out {tmp_path}/i --engine inverted")
    done.shows("12 images of")
    index, encoder = open_index(tmp_path / "i"), SparseEncoder.load(run / "sparse")
    best = next(iter(index.search(encoder.encode_texts(["a red star"]), 1)))[0]
    diptych(f"search {tmp_path}/i 'a red star' -k 1").shows(best[0], f"{best[1]:.3f}")
    before = every_byte(run) | every_byte(bags)
    diptych(f"sparse explain {tmp_path}/i 'a red star' -k 1").shows(best[0], f"score {best[1]:.3f}")
    for folder in (run / "sparse", bags):
        for line in (f"terms {folder} -k 4000 -n 3", f"explain {folder} 'a red star' -k 3 --terms 4000"):
            diptych(f"sparse {line}").hides("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert every_byte(run) | every_byte(bags) == before


def test_compare_with_the_dense_run(diptych, run):
    for source in (run, run / "sparse"):
        diptych(f"evaluate {source} {FEW}")
    dense, sparse = (Result.open(folder / "evaluation" / "scenes-test") for folder in (run, run / "sparse"))
    assert sparse.protocol.about["data"] == dense.protocol.about["data"]
    done = diptych(f"compare {run}/sparse {run} --samples 20 --flips 20")
    done.shows(f"{sparse.score('rsum').value:.1f}", f"{dense.score('rsum').value:.1f}")
    diptych(f"evaluate {run}/sparse --split val {FEW}").shows("R@1")
    assert (run / "sparse" / "rows" / "val" / "own_terms").is_dir()
    assert not (run / "sparse" / "rows" / "val" / "dense").exists()  # the run's own are used
    diptych(f"sparse terms {run}/sparse --split val -n 1").shows("val/")


def test_what_needs_dense_embeddings_is_refused(diptych, run, bags):
    for line in (
        f"analyse protocol {bags} --target 'i2t R@1=1.0'",
        f"analyse stress {run}/sparse --out {bags}/none",
        f"analyse cocos {run}/sparse --objective infonce",
    ):
        diptych(line, refused="bags of terms")
    with pytest.raises(UsageError, match="bags of terms") as raised:
        DualEncoder.load(run / "sparse")
    assert "SparseEncoder.load" in raised.value.fix


WORDS = ("dog", "cat", "man", "snow", "beach", "red", "bike", "runs")
QUICK = "--set training.epochs=2 --set head.width=8 --set training.batch_size=16"


def dataset(folder, images=40):
    """A data set without pictures, and a folder of rows of it."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(len(WORDS), 6))
    entries, pictures, captions = [], [], []
    for number in range(images):
        chosen = random.permutation(len(WORDS))[:3]
        split = "train" if number < 24 else "val" if number < 32 else "test"
        sentences = [{"raw": " ".join(WORDS[word] for word in chosen), "sentid": number}]
        entries.append({"filename": f"{number}.jpg", "imgid": number, "split": split, "sentences": sentences})
        pictures.append(vectors[chosen].sum(axis=0))
        captions.append(vectors[chosen[:2]].sum(axis=0))
    (folder / "rows").mkdir(parents=True)
    (folder / "dataset.json").write_text(json.dumps({"images": entries, "dataset": "things"}))
    for kind, rows in (("images", pictures), ("texts", captions)):
        np.save(folder / "rows" / f"{kind}.npy", np.array(rows, dtype=np.float32))
        (folder / "rows" / f"{kind}.txt").write_text("\n".join(map(str, range(images))))
    return folder


def sparsify(diptych, folder, more="", failed=""):
    data = f"rows:{folder}/rows --data {folder}/dataset.json --out {folder.parent}/s"
    return diptych(f"sparse train {data} {QUICK} {more}", failed=failed)


@pytest.fixture(scope="module")
def sparsified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparsified")
    data = dataset(folder / "d")
    command(f"sparse train rows:{data}/rows --data {data}/dataset.json --out {folder}/s {QUICK}")
    return folder


@pytest.fixture
def made(sparsified, tmp_path):
    """A head of rows, in a folder that holds the dense rows too."""
    shutil.copytree(sparsified, tmp_path, dirs_exist_ok=True)
    return tmp_path / "s"


def test_rows_without_an_encoder(diptych, sparsified):
    made, data = sparsified / "s", sparsified / "d"
    assert (made / "embeddings" / "things-train" / "images").is_dir()
    sparsify(diptych, data)
    sparsify(diptych, data, "--eta 1e-2", failed="was begun with loss.eta")
    for folder in (made / "embeddings", made):
        with exclusive_folder(folder):
            sparsify(diptych, data, failed="another process is working in")
    (sparsified / "v.txt").write_text("dog 1 2\n")
    sparsify(
        diptych, data, f"--word-vectors {sparsified}/v.txt", failed="v.txt is not a file of word vectors"
    )
    name = SparseEmbeddings.open(made / "rows" / "test" / "texts").ids[2]
    for query in (name, "33.jpg --of images"):  # its own captions and pictures are queries
        diptych(f"sparse explain {made} {query} -k 1").shows("of the score")
    for verb in ("explain", "terms"):
        diptych(f"sparse {verb} {made} 'a sentence [/bold] of no client'", refused="give ids")


def test_rows_of_another_split_are_made_on_request(diptych, made):
    made = made.rename(made.with_name("[bold]"))
    name = shlex.quote(str(made))
    diptych(f"sparse terms {name} -n 1").shows(f"diptych sparse explain {name}")
    diptych(f"sparse terms {name} --split val", refused=("only of test", "diptych embed", "--split val"))
    diptych(f"embed {name} --split val")
    diptych(f"sparse terms {name} --split val -n 1")
    shutil.rmtree(made / "rows")
    diptych(f"index {name}").shows("8 images of things")


def test_corrupt_markers_and_folders_that_are_gone(diptych, made, tmp_path):
    marker = (made / "sparse.json").read_bytes()
    for content in (
        *("{}", "[]", "x", '{"split": "test"}'),
        '{"origin": {"model": 1, "data": 2}, "split": "test"}',
    ):
        (made / "sparse.json").write_text(content)
        diptych(f"sparse terms {made}", failed=("sparse.json", "fix: "))
    (made / "sparse.json").write_bytes(marker)
    gone, embedded = tmp_path / "gone", made / "embeddings" / "things-train"
    head = SparseFolder.open(made)
    replace(head, origin=replace(head.origin, model=str(gone))).save()
    write_json(embedded / "origin.json", {**read_json(embedded / "origin.json"), "model": str(gone)})
    for line in (f"explain {made} 'a dog'", f"train {embedded} --out {tmp_path}/new"):
        diptych(f"sparse {line}", refused=f"was made with {gone}")
    (embedded / "origin.json").write_text("{}")
    diptych(f"sparse train {embedded} --out {tmp_path}/new", code=1)
