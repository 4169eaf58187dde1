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


def embedded(folder: Path, model: TwoStage, split: str, encoder: str = "e" * 16) -> Path:
    """What ``diptych embed`` leaves, without an encoder."""
    n = len(model.images)
    shared = {"dataset": "made-up", "split": split, "data": f"data of {split}"}
    sides = {"image": (model.images, n), "text": (model.texts, len(model.texts))}
    for kind, (rows, size) in sides.items():
        ids = [f"{kind}{row}" for row in range(size)]
        Embeddings(ids, rows, encoder, shared["data"], kind, shared).save(folder / f"{kind}s")
    EncodedCollection(
        *(Embeddings.open(folder / name) for name in ("images", "texts")), model.home, shared
    ).write_header(folder)
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
def folders(tmp_path_factory: pytest.TempPathFactory, model: TwoStage) -> Path:
    home = tmp_path_factory.mktemp("protocol")
    embedded(home / "test", model, "test")
    embedded(home / "val", TwoStage(N, seed=4, contrast=0.8), "val")
    reranked(home / "reranked", model)
    return home


def targets(values: dict[str, float]) -> str:
    return " ".join(f"--target '{name}={value}'" for name, value in values.items())


def test_it_finds_k_test(diptych: Command, folders: Path, model: TwoStage, tmp_path: Path) -> None:
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    out = tmp_path / "out"
    wanted = f"{targets(printed)} --changes 1 --out {out}"
    done = diptych(f"analyse protocol {folders}/test --reranked {folders}/reranked {wanted}")
    done.shows("k_test = 2 explains it", "no proof of it", "to 5 candidates of each query")
    done.shows("test: made-up test, 150 images, 750 captions; encoder eeeeeeeeeeeeeeee")
    done.shows(f"open {out / 'report.html'}")
    written = json.loads((out / "protocol.json").read_text())
    assert written["explanations"][0]["changes"] == "k_test = 2"
    assert written["says"][1].startswith("k_test = 2 explains it")
    assert "k_test = 2" in (out / "report.html").read_text()


def test_candidates_that_were_stored_with_embeddings_are_used(
    diptych: Command, model: TwoStage, tmp_path: Path
) -> None:
    folder = embedded(tmp_path / "test", model, "test")
    reranked(folder / "reranked", model)
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    done = diptych(f"analyse protocol {folder} {targets(printed)} --changes 1")
    done.shows("k_test = 2 explains it", f"candidates of {folder / 'reranked'}")
    reranked(folder / "reranked", model, encoder="f" * 16)
    done = diptych(f"analyse protocol {folder} {targets(printed)} --changes 1")
    assert f"{folder / 'reranked'} is left aside" in done.out
    assert "k_test = 2 explains it" not in done.out


def test_another_split_is_named(diptych: Command, folders: Path) -> None:
    val = TwoStage(N, seed=4, contrast=0.8)
    printed = rounded(published_recalls(val.contrastive, None, val.home, 0))
    done = diptych(f"analyse protocol {folders}/test --also val={folders}/val {targets(printed)} --changes 1")
    assert "source = val explains it" in done.out
    assert not (folders / "test" / "protocol").exists()  # nothing is written unless it is wanted
    done.shows("next: diptych analyse protocol --", "--out protocol")


def test_numbers_that_look_re_ranked(diptych: Command, folders: Path, tmp_path: Path) -> None:
    done = diptych(f"analyse protocol {folders}/test --published '{X_VLM}' --changes 1 --out {tmp_path}/out")
    done.shows("Nothing that was tried explains it")
    done.shows("with --reranked FOLDER (or diptych evaluate --rerank K)")
    done.shows("printed: reproducibility table-2.1, row Repr. X-VLM, Flickr30k")


def test_other_data_is_said_first_and_loudly(
    diptych: Command, folders: Path, model: TwoStage, tmp_path: Path
) -> None:
    """What fits numbers of other data explains nothing, and is not said to."""
    out = tmp_path / "out"
    done = diptych(f"analyse protocol {folders}/test --published '{X_VLM}' --changes 1 --out {out}")
    said = (
        "OTHER DATA: printed of flickr30k test (1,000 images), computed from made-up test (150 images); what follows "
        "says which protocols would give such numbers on these data, not why they were printed of those."
    )
    assert done.out.startswith(f"warning: {said}")
    assert json.loads((out / "protocol.json").read_text())["says"][0] == said
    page = (out / "report.html").read_text()
    assert page.index("OTHER DATA") < page.index("Under the default protocol")


def test_score_matrices_from_files(
    diptych: Command, model: TwoStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("itc.npy", model.contrastive)
    np.save("itm.npy", model.matching)
    np.save("t2i.npy", model.matching.T)
    np.save("home.npy", model.home)
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    for matching in (("itm.npy",), ("i2t=itm.npy", "t2i=t2i.npy")):
        given = " ".join(f"--matching {one}" for one in matching)
        done = diptych(f"analyse protocol itc.npy {given} {targets(printed)} --changes 1")
        done.shows("k_test = 2 explains it", "captions: 5 texts of each image, next to each other (assumed)")
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".npy"]
    done = diptych(
        f"analyse protocol itc.npy --caption-image home.npy {targets(printed)} --changes 1 --out alone"
    )
    done.shows("or --matching FILE for a score matrix")
    assert "assumed" not in done.out
    for arguments, message in (
        (["itc.npy", "--matching", "nowhere.npy"], "nowhere.npy does not exist"),
        (["itc.npy", "--matching", "itm.npy", "--matching", "i2t=itm.npy"], "--matching is given 2 times"),
        (["itc.npy", "--matching", "i2t=itm.npy"], "give i2t and t2i"),
        (["itc.npy", "--split", "test"], "--split without a RUN"),
        (["--matching", "itm.npy"], "--matching without a score matrix"),
        (["t2i.npy"], "150 texts of 750 images"),
        (["home.npy"], "no matrix"),
    ):
        done = diptych("analyse protocol", *arguments, "--target", "i2t R@1=5", code=None)
        done.says(message)


def test_the_digits_alone(diptych: Command, tmp_path: Path) -> None:
    done = diptych("analyse protocol --published 'reproducibility:table-2.1:Repr. CLIP, Flickr30k'")
    assert "1,014 queries, cut off (images of Flickr30k val" in done.out
    done = diptych(f"analyse protocol --target 'i2t R@1=63.3' --out {tmp_path}/out")
    done.shows("i2t R@1", "63.3")
    assert json.loads((tmp_path / "out" / "protocol.json").read_text())["target"] == {"i2t R@1": "63.3"}
    assert (tmp_path / "out" / "report.html").is_file()


def test_embeddings_that_do_not_belong(
    diptych: Command, folders: Path, model: TwoStage, tmp_path: Path
) -> None:
    other = reranked(tmp_path / "other", model, encoder="f" * 16)
    diptych(
        f"analyse protocol {folders}/test --reranked {other} --target 'i2t R@1=5'",
        failed="re-ranked with encoder ffffffffffffffff, the embeddings are of eeeeeeeeeeeeeeee",
    )
    for also in ("val", "=x", f"test={folders / 'val'}"):
        diptych(f"analyse protocol {folders}/test --also {also} --target 'i2t R@1=5'", refused="--also")
    diptych(
        f"analyse protocol {folders}/test --reranked {folders}/val --target 'i2t R@1=5'",
        failed="no reranked.json",
    )
    diptych(f"analyse protocol {folders}/test --tolerance 5 --target 'i2t R@1=5'", refused="less than 1")
