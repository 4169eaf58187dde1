from __future__ import annotations

import json
import shlex

import pytest
from commands import QUICK_HEAD, Done, command


@pytest.fixture
def diptych(capsys, monkeypatch):
    """Run a command line in this process and assert how it ends.

    The first argument is split as a shell would, further ones are taken as they are. ``refused`` and ``failed`` are
    texts of a usage error (exit code 2) and of another one (1); a ``code`` of None is any error, "any" is anything.
    """
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it in its workers

    def run(line="", *arguments, code=0, refused=(), failed=()):
        from diptych.cli import main

        given = [*shlex.split(str(line)), *map(str, arguments)]
        monkeypatch.setattr("sys.argv", ["diptych", *given])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured, found = capsys.readouterr(), caught.value.code
        done = Done(found if isinstance(found, int) else 0, captured.out, captured.err)
        expected = 2 if refused else 1 if failed else code
        is_right = done.code == expected or (expected is None and done.code) or expected == "any"
        assert is_right, (given, done.out, done.err)
        assert "Traceback" not in done.err
        for words in (refused, failed):
            done.says(*((words,) if isinstance(words, str) else words))
        return done

    return run


@pytest.fixture(scope="session")
def embedded(run_folder, tmp_path_factory):
    """The test split as the run embeds it."""
    from diptych.cli.sources import encoded_of
    from diptych.data.source import DataSpec

    folder = tmp_path_factory.mktemp("embedded") / "test"
    encoded_of(str(run_folder), DataSpec(), None, folder)
    return folder


@pytest.fixture(scope="session")
def head_folder(run_folder, tmp_path_factory):
    """A sparse head over the captions of the run."""
    folder = tmp_path_factory.mktemp("sparse") / "head"
    command(f"sparse train {run_folder} {QUICK_HEAD} --out {folder}")
    return folder


@pytest.fixture(scope="session")
def index(embedded, tmp_path_factory):
    """An exact index over the pictures of the test split."""
    folder = tmp_path_factory.mktemp("index") / "exact"
    command(f"index {embedded} --out {folder}")
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A shop of 80 products, some without a picture, a title, a category; and a category run trained on it."""
    from diptych.commerce.scenes.products import make_product_scenes

    folder = tmp_path_factory.mktemp("trained")
    shop, run = folder / "shop", folder / "run"
    make_product_scenes(
        shop, n_products=80, levels=(2, 3), without_picture=0.1, without_title=0.05, without_category=0.1
    )
    options = "--set epochs=6 --set hidden=32 --set width=16 --set batch_size=16"
    options += " --setting most-specific --query name"
    command(f"categories train {shop} --out {run} --text-encoder lsa:16 {options}")
    return shop, run


@pytest.fixture(scope="session")
def tiny_shop(tmp_path_factory):
    """The tiny shop as a Karpathy file; without the product that has no image."""
    from tiny_catalogue import NO_PICTURE, tiny_collection

    folder = tmp_path_factory.mktemp("shop")
    collection = tiny_collection(folder / "images")
    assert collection.records is not None
    images = [
        {"filename": f"{name}.png", "split": split, "sentences": [{"raw": record["title"] or name}], **record}
        for name, split, record in zip(
            collection.image_ids, collection.splits, collection.records, strict=True
        )
        if name != NO_PICTURE
    ]
    (folder / "dataset_tiny.json").write_text(json.dumps({"dataset": "tiny", "images": images}))
    return folder


@pytest.fixture(scope="session")
def shop_log(tmp_path_factory):
    """A log of random events."""
    from events import write_log
    from intent_logs import random_events

    return write_log(tmp_path_factory.mktemp("log") / "shop", random_events(0)).folder


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """A table of features."""
    from feature_tables import small_features

    return small_features(tmp_path_factory.mktemp("features") / "shop", n=600)


@pytest.fixture(scope="session")
def scorer(features, tmp_path_factory):
    """A scorer of these features, of two steps."""
    from diptych.commerce.purchase_intent.scoring import TrainOptions, train

    options = TrainOptions(model="logistic-regression", samples=0, folds=2)
    return train(features, tmp_path_factory.mktemp("scorer") / "shop", options=options, steps=[0, 3])


@pytest.fixture(scope="session")
def stressed(tmp_path_factory):
    """Two models under stress: one that sees letters, one that sees words."""
    from stressed import LAST_WORD, REVERSED, Reader, painted

    from diptych.analysis.perturbations import choose_perturbations
    from diptych.evaluation.stress.stress import stress

    folder = tmp_path_factory.mktemp("stressed")
    some = {"samples": 20, "flips": 99, "split": "test", "seeds": (0, 1)}
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["brightness"])]
    stress(Reader("letters"), painted(), folder / "letters", perturbations=chosen, **some)
    stress(Reader("words"), painted(), folder / "words", perturbations=chosen[:2], **some)
    return folder


@pytest.fixture(scope="session")
def blip(tmp_path_factory):
    """A tiny random BLIP in the layout of transformers."""
    return transformers_folder("blip", tmp_path_factory.mktemp("models") / "blip")


@pytest.fixture(scope="session")
def clip(tmp_path_factory):
    return transformers_folder("clip", tmp_path_factory.mktemp("models") / "clip", limit=48)


def transformers_folder(*given, **options):
    from tests.encoders import tiny_pretrained

    return tiny_pretrained.transformers_folder(*given, **options)
