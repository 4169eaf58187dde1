"""A sparse head in an encoder's place: on its own data, and on data that neither it nor its encoder has seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK_HEAD, Command, command, every_byte

from diptych.core.errors import UsageError
from diptych.data import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation import Result, evaluate
from diptych.index import open_index
from diptych.metrics import GroundTruth
from diptych.sparse import SparseEncoder, SparsifiedCollection

QUICK = "--samples 0 --measure R@1 --measure rsum"


@pytest.fixture(scope="module")
def run(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a head in it."""
    folder = tmp_path_factory.mktemp("world") / "run"
    shutil.copytree(run_folder, folder)
    command(f"sparse train {folder} {QUICK_HEAD} --eta 1e-4")
    return folder


@pytest.fixture(scope="module")
def unseen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve other scenes, all of them a test split."""
    from diptych.data.scenes import make_scenes

    return make_scenes(tmp_path_factory.mktemp("unseen") / "other", 0, 0, 12, seed=9, size=32, workers=1)


@pytest.fixture(scope="module")
def embedded(run: Path, unseen: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedded") / "bags"
    command(f"embed {run}/sparse --data {unseen} --out {folder}")
    return folder


def test_evaluate_new_data(diptych: Command, run: Path, unseen: Path, embedded: Path, tmp_path: Path) -> None:
    done = diptych(f"evaluate {run}/sparse --data {unseen} {QUICK} --out {tmp_path}/e")
    done.shows("rsum", "similarity dot", f"diptych index {tmp_path}/e/embeddings")
    found = Result.open(tmp_path / "e" / "evaluation")
    collection, encoder = read_collection(unseen), SparseEncoder.load(run / "sparse")
    rows = [
        encoder.encode_images([collection.image(row) for row in range(12)]),
        encoder.encode_texts(list(collection.captions)),
    ]
    truth = GroundTruth.from_caption_image(collection.caption_image, 12)
    wanted = evaluate((rows[0] @ rows[1].T).toarray(), None, truth, ["R@1", "rsum"])
    assert found.values() == pytest.approx(wanted.values())
    assert found.protocol.about["encoder"] == encoder.fingerprint
    diptych(f"evaluate {embedded} {QUICK} --out {tmp_path}/again")
    assert Result.open(tmp_path / "again" / "evaluation").values() == found.values()
    diptych(f"evaluate {run}/sparse --data {unseen} --rerank 3", refused="dense encoder")


def test_embed_new_data(run: Path, unseen: Path, embedded: Path) -> None:
    bags, encoder = SparsifiedCollection.open(embedded), SparseEncoder.load(run / "sparse")
    captions = list(read_collection(unseen).captions)
    np.testing.assert_allclose(bags.texts.rows.toarray(), encoder.encode_texts(captions).toarray(), atol=1e-5)
    assert (bags.images.encoder, tuple(bags.images.terms)) == (encoder.fingerprint, encoder.terms)
    before = every_byte(embedded)
    command(f"embed {run}/sparse --data {unseen} --out {embedded}")
    assert every_byte(embedded) == before


def test_index_new_data_search_it_and_explain_what_is_found(
    diptych: Command, run: Path, unseen: Path, tmp_path: Path
) -> None:
    done = diptych(f"index {run}/sparse --data {unseen} --out {tmp_path}/i --engine inverted")
    done.shows("12 images of")
    index, encoder = open_index(tmp_path / "i"), SparseEncoder.load(run / "sparse")
    best = next(iter(index.search(encoder.encode_texts(["a red star"]), 1)))[0]
    diptych(f"search {tmp_path}/i 'a red star' -k 1").shows(best[0], f"{best[1]:.3f}")
    before = every_byte(run)
    diptych(f"sparse explain {tmp_path}/i 'a red star' -k 1").shows(best[0], f"score {best[1]:.3f}")
    assert every_byte(run) == before


def test_compare_with_the_dense_run(diptych: Command, run: Path) -> None:
    for source in (run, run / "sparse"):
        diptych(f"evaluate {source} {QUICK}")
    dense, sparse = (Result.open(folder / "evaluation" / "scenes-test") for folder in (run, run / "sparse"))
    assert sparse.protocol.about["data"] == dense.protocol.about["data"]
    done = diptych(f"compare {run}/sparse {run} --samples 20 --flips 20")
    done.shows(f"{sparse.score('rsum').value:.1f}", f"{dense.score('rsum').value:.1f}")


def test_another_split_of_its_own_data(diptych: Command, run: Path) -> None:
    diptych(f"evaluate {run}/sparse --split val {QUICK}").shows("R@1")
    assert (run / "sparse" / "rows" / "val" / "own_terms").is_dir()
    assert not (run / "sparse" / "rows" / "val" / "dense").exists()  # the run's own are used
    diptych(f"sparse terms {run}/sparse --split val -n 1").shows("val/")


def test_terms_and_explain_write_nothing_and_show_no_special_term(
    diptych: Command, run: Path, embedded: Path, tmp_path: Path
) -> None:
    before = every_byte(run) | every_byte(embedded)
    for folder in (run / "sparse", embedded):
        for line in (f"terms {folder} -k 4000 -n 3", f"explain {folder} 'a red star' -k 3 --terms 4000"):
            diptych(f"sparse {line}").hides("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert every_byte(run) | every_byte(embedded) == before


def test_what_needs_dense_embeddings_says_so(diptych: Command, run: Path, embedded: Path) -> None:
    for line in (
        f"analyse protocol {embedded} --target 'i2t R@1=1.0'",
        f"analyse stress {run}/sparse --out {embedded}/none",
        f"analyse cocos {run}/sparse --objective infonce",
    ):
        diptych(line, refused="bags of terms")
    with pytest.raises(UsageError, match="bags of terms") as raised:
        DualEncoder.load(run / "sparse")
    assert "SparseEncoder.load" in raised.value.fix
