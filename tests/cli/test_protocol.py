"""``diptych analyse protocol`` through its command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from two_stage import TwoStage, published_recalls, rounded

from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.metrics import top_k
from diptych.metrics.candidates import Candidates, Reranked

N = 150
X_VLM = "reproducibility:table-2.1:Repr. X-VLM, Flickr30k"


def embedded(folder: Path, model: TwoStage, split: str) -> Path:
    """What ``diptych embed`` leaves, without an encoder."""
    shared = {"dataset": "made-up", "split": split, "data": f"data of {split}"}
    for kind, rows in (("image", model.images), ("text", model.texts)):
        ids = [f"{kind}{row}" for row in range(len(rows))]
        Embeddings(ids, rows, "e" * 16, shared["data"], kind, shared).save(folder / f"{kind}s")
    sides = (Embeddings.open(folder / name) for name in ("images", "texts"))
    EncodedCollection(*sides, model.home, shared).write_header(folder)
    origin = {"model": "made-up", "data": {"path": "made-up"}, "split": split}
    write_json(folder / "origin.json", origin)
    return folder


def reranked(folder: Path, model: TwoStage, encoder: str = "e" * 16) -> Path:
    sides = []
    for queries, gallery, matching in (
        (model.images, model.texts, model.matching),
        (model.texts, model.images, model.matching.T),
    ):
        items, scores = top_k(queries, gallery, 16)
        final = np.take_along_axis(matching, items, axis=1).astype(np.float32)
        sides.append(Candidates(items, scores.astype(np.float32), final))
    return Reranked(*sides, about={"encoder": encoder, "data": "data of test"}).save(folder)


@pytest.fixture(scope="module")
def model() -> TwoStage:
    return TwoStage(N)


@pytest.fixture(scope="module")
def printed(model: TwoStage) -> str:
    """The numbers of a paper that re-ranked two candidates, as targets."""
    return targets(rounded(published_recalls(model.contrastive, model.matching, model.home, 2)))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, model: TwoStage) -> Path:
    home = tmp_path_factory.mktemp("protocol")
    embedded(home / "test", model, "test")
    embedded(home / "val", TwoStage(N, seed=4, contrast=0.8), "val")
    reranked(home / "reranked", model)
    return home


def targets(values: dict[str, float]) -> str:
    return " ".join(["--changes 1", *(f"--target '{name}={value}'" for name, value in values.items())])


def test_it_finds_k_test(
    diptych: Command, folders: Path, model: TwoStage, printed: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = diptych(f"analyse protocol {folders}/test --reranked {folders}/reranked {printed} --out {out}")
    done.shows("k_test = 2 explains it", "no proof of it", "to 5 candidates of each query")
    done.shows("test: made-up test, 150 images, 750 captions; encoder eeeeeeeeeeeeeeee")
    done.shows(f"open {out / 'report.html'}")
    written = json.loads((out / "protocol.json").read_text())
    assert written["explanations"][0]["changes"] == "k_test = 2"
    assert written["says"][1].startswith("k_test = 2 explains it")
    assert "k_test = 2" in (out / "report.html").read_text()
    # candidates that were stored with embeddings are used, those of another encoder are not
    folder = embedded(tmp_path / "test", model, "test")
    reranked(folder / "reranked", model)
    done = diptych(f"analyse protocol {folder} {printed}")
    done.shows("k_test = 2 explains it", f"candidates of {folder / 'reranked'}")
    reranked(folder / "reranked", model, encoder="f" * 16)
    done = diptych(f"analyse protocol {folder} {printed}")
    done.shows(f"{folder / 'reranked'} is left aside")
    done.hides("k_test = 2 explains it")


def test_another_split_is_named(diptych: Command, folders: Path) -> None:
    val = TwoStage(N, seed=4, contrast=0.8)
    values = targets(rounded(published_recalls(val.contrastive, None, val.home, 0)))
    done = diptych(f"analyse protocol {folders}/test --also val={folders}/val {values}")
    done.shows("source = val explains it", "next: diptych analyse protocol --", "--out protocol")
    assert not (folders / "test" / "protocol").exists()  # nothing is written without --out


def test_numbers_of_other_data_are_warned_of_first(diptych: Command, folders: Path, tmp_path: Path) -> None:
    """What fits numbers of other data explains nothing, and does not claim to."""
    out = tmp_path / "out"
    done = diptych(f"analyse protocol {folders}/test --published '{X_VLM}' --changes 1 --out {out}")
    done.shows("Nothing that was tried explains it")
    done.shows("with --reranked FOLDER (or diptych evaluate --rerank K)")
    done.shows("printed: reproducibility table-2.1, row Repr. X-VLM, Flickr30k")
    warning = "OTHER DATA: printed of flickr30k test (1,000 images), computed from made-up test (150 images);"
    assert done.out.startswith(f"warning: {warning}")
    assert json.loads((out / "protocol.json").read_text())["says"][0].startswith(warning)
    page = (out / "report.html").read_text()
    assert page.index("OTHER DATA") < page.index("Under the default protocol")


def test_score_matrices_from_files(
    diptych: Command, model: TwoStage, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays = {"itc": model.contrastive, "itm": model.matching, "t2i": model.matching.T, "home": model.home}
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    for given in ("--matching itm.npy", "--matching i2t=itm.npy --matching t2i=t2i.npy"):
        done = diptych(f"analyse protocol itc.npy {given} {printed}")
        done.shows("k_test = 2 explains it", "captions: 5 texts of each image, next to each other (assumed)")
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".npy"]
    done = diptych(f"analyse protocol itc.npy --caption-image home.npy {printed} --out own")
    done.shows("or --matching FILE for a score matrix")
    done.hides("assumed")
    diptych("analyse protocol t2i.npy --target 'i2t R@1=5'", refused="150 texts of 750 images")


def test_the_digits_without_embeddings(diptych: Command, tmp_path: Path) -> None:
    done = diptych("analyse protocol --published 'reproducibility:table-2.1:Repr. CLIP, Flickr30k'")
    done.shows("1,014 queries, cut off (images of Flickr30k val")
    done = diptych(f"analyse protocol --target 'i2t R@1=63.3' --out {tmp_path}/out")
    done.shows("i2t R@1", "63.3")
    assert json.loads((tmp_path / "out" / "protocol.json").read_text())["target"] == {"i2t R@1": "63.3"}
    assert (tmp_path / "out" / "report.html").is_file()


def test_candidates_that_do_not_belong(
    diptych: Command, folders: Path, model: TwoStage, tmp_path: Path
) -> None:
    other = reranked(tmp_path / "other", model, encoder="f" * 16)
    line = f"analyse protocol {folders}/test --target 'i2t R@1=5' --reranked"
    wrong = "re-ranked with encoder ffffffffffffffff, the embeddings are of eeeeeeeeeeeeeeee"
    diptych(f"{line} {other}", failed=wrong)
    diptych(f"{line} {folders}/val", failed="no reranked.json")
