from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command

from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.data.scenes import make_product_scenes

FAST = ("--set", "epochs=2", "--set", "hidden=16", "--set", "width=8", "--text-encoder", "lsa:16")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty products, some without a picture, a title, attributes or a category."""
    return make_product_scenes(
        tmp_path_factory.mktemp("shop") / "shop",
        60,
        levels=(2, 3),
        size=32,
        without_picture=0.1,
        without_title=0.1,
        without_attributes=0.1,
        without_category=0.1,
        workers=1,
    )


def test_from_products_to_a_run_and_its_measures(shop: Path, tmp_path: Path, diptych: Command) -> None:
    out = tmp_path / "run"
    done = diptych("categories", "train", shop, "--out", out, *FAST)
    assert done.code == 0, done.err
    run = CategoryRun.open(out)
    left = run.model.about["without_category"]
    assert left > 0
    assert f"{left} without a category left out" in done.out
    assert "without a picture" in done.out
    assert "splits: train 42" in done.out
    assert "--image-encoder backbone:NAME" in done.out
    assert "--text-encoder sentence:NAME" in done.out
    assert "the best by mAP@10 of validation products" in done.out
    rows = [line.split() for line in done.out.splitlines() if line.lstrip().startswith("clip-ita ")]
    (row,) = [row for row in rows if row[1] != "of"]
    assert all(0 <= float(number) <= 100 for number in row[1:])
    assert done.out.splitlines()[-1].startswith("next: diptych categories ")
    before = (out / "model/model.safetensors").read_bytes()
    (out / "category_run.json").unlink()  # killed after the training and before the run was whole
    again = diptych("categories", "train", shop, "--out", out, *FAST)
    assert again.code == 0, again.err
    assert (out / "model/model.safetensors").read_bytes() == before
    assert CategoryRun.open(out).about == run.about


def test_options_reach_the_training(shop: Path, tmp_path: Path, diptych: Command) -> None:
    out = tmp_path / "run"
    done = diptych(
        *("categories", "train", shop, "--out", out, *FAST, "--published", "--model", "clip-ta"),
        *("--setting", "most-general", "--query", "path", "--seed", "3", "--set", "tree_distance=0.1"),
        *("--set", "attributes=attention", "--split-by", "product", "--split-option", "seed=1"),
    )
    assert done.code == 0, done.err
    said = CategoryRun.open(out).about
    options = said["options"]
    assert (options["batch_size"], options["temperature"], options["duplicates"]) == (8, 1.0, "negatives")
    assert (options["setting"], options["query"], options["seed"]) == ("most-general", "path", 3)
    assert (options["tree_distance"], options["attributes"], options["epochs"]) == (0.1, "attention", 2)
    assert said["encoders"]["image"] is None
    assert (said["data"]["split_by"], said["data"]["split_options"]) == ("product", {"seed": 1})
    assert "image encoder: none, the model needs none" in done.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--model", "clip-x"), "unknown trained model 'clip-x'"),
        (("--model", "bm25"), "unknown trained model 'bm25'"),
        (("--setting", "general"), "unknown setting"),
        (("--set", "temperature=0"), "temperature: Input should be greater"),
        (("--set", "temperature=-1"), "got -1"),
        (("--set", "epoch=3"), "unknown key 'epoch'"),
        (("--set", "seed=3"), "--seed"),
        (("--query", "title"), "got 'title'"),
        (("--image-encoder", "grid", "--image-option", "size=3"), "size"),
        (("--split-by", "colour"), "colour"),
        (("--reader", "xml"), "xml"),
    ],
    ids=lambda value: "=".join(value[1:]).replace("/", "") if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused(
    given: tuple[str, ...], said: str, shop: Path, tmp_path: Path, diptych: Command
) -> None:
    done = diptych("categories", "train", shop, "--out", tmp_path / "run", "--text-encoder", "lsa:8", *given)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "run").exists()


def test_data_that_is_not_there_or_holds_no_products(tmp_path: Path, diptych: Command) -> None:
    done = diptych("categories", "train", tmp_path / "nothing", "--out", tmp_path / "run")
    assert (done.code, "does not exist" in done.err) == (2, True)


def test_another_training_in_the_folder(shop: Path, tmp_path: Path, diptych: Command) -> None:
    (tmp_path / "holiday.txt").write_text("sun")
    done = diptych("categories", "train", shop, "--out", tmp_path, *FAST)
    assert done.code == 2
    assert "holds other things" in done.err
