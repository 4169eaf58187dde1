"""The front door: every public name is listed once, and what the documentation shows of them runs."""

from __future__ import annotations

import copy
import doctest
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from commands import command

import diptych as dp
from diptych import api
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, UsageError
from diptych.index import open_index
from diptych.report.searcher import Searcher

SHORT = {"stages.0.epochs": 1, "batches.size": 16}


@pytest.fixture
def world(
    run_folder: Path,
    scenes_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    short_path: None,
) -> dict[str, Any]:
    """What examples are run with: a run in ``runs/x``, its encoder, its data."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x").symlink_to(run_folder)
    monkeypatch.chdir(tmp_path)
    data = dp.read(scenes_folder)
    return {"dp": dp, "np": np, "data": data, "encoder": dp.load("runs/x"), "short": SHORT}


def test_names_are_few_and_nothing_else_is_seen() -> None:
    namespaces = (dp, dp.losses, dp.measures, dp.perturbations)
    assert dir(dp) == sorted(dp.__all__)
    assert len({name for one in namespaces for name in dir(one) if not name.startswith("_")}) <= 120
    assert 35 <= len(dir(dp)) <= 50


def test_every_function_shows_an_example_that_runs(world: dict[str, Any]) -> None:
    """Run the examples of the docstrings in one folder, as a reader would."""
    functions = [one for name, one in vars(api).items() if name in dp.__all__ and inspect.isfunction(one)]
    assert len(functions) == 16
    for one in functions:
        (found,) = doctest.DocTestFinder(recurse=False).find(one, one.__name__, globs=dict(world))
        assert found.examples, f"{one.__name__} shows no example"
        runner = doctest.DocTestRunner(verbose=False)
        assert runner.run(found).failed == 0, one.__name__


SNIPPETS = {
    "evaluate": """
        encoder = dp.load("runs/x")
        result = dp.evaluate(encoder, data)
        assert result.rsum == result.value("rsum") and result.compare(result).difference("other", "rsum").p == 1
        frame = result.to_pandas()
    """,
    "own rows": """
        images, texts = np.eye(4), torch.eye(4, dtype=torch.float64).repeat_interleave(2, 0)
        result = dp.evaluate(images, texts, text_image=[0, 0, 1, 1, 2, 2, 3, 3])
        assert result.rsum == 600
    """,
    "train with a function": """
        loss = lambda scores, positives: torch.relu(0.2 + scores - scores.diag()[:, None])[~positives].sum()
        run = dp.train("scenes", data, loss=loss, out="runs/own", settings=short)
        assert run.finished and dp.load(run).width == 256
    """,
    "search": """
        index = dp.build_index(encoder, data, engine="exact")
        found = index.search("a red square", k=5)
        index.add(data.image(0), ids=["mine"])
        assert "mine" in [hit.name for hit in index.search(data.image(0), k=2)]
    """,
    "sparse": """
        head = dp.sparsify(encoder, data, training={"epochs": 1, "batch_size": 16}, vocabulary={"size": 60})
        terms = head.terms_of("a red square")
        found = dp.build_index(head, data).search("a red square", k=3)
    """,
    "stress": """
        found = dp.stress(encoder, data, dp.perturbations.blur, seeds=1, samples=0, flips=10)
        audit = dp.audit("runs/x", probes=("linear",), samples=0)
        counts = dp.gradient_counts(encoder, data, dp.losses.Triplet(0.2), batch_size=16)
    """,
    "study": """
        verdict = dp.run_study("intent.table-6.7")
        print(verdict)
    """,
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_are_short_and_run(name: str, world: dict[str, Any]) -> None:
    code = inspect.cleandoc(SNIPPETS[name])
    assert len(code.splitlines()) <= 4
    exec(code, world | {"torch": torch})


IN_SMALL = {
    "n_train=2000, n_val=100, n_test=200": "n_train=48, n_val=16, n_test=16, size=32",
    'out="runs/first"': 'out="runs/first", settings=short',
    "sparsify(encoder, data)": 'sparsify(encoder, data, training={"epochs": 1, "batch_size": 16})',
}


def test_the_python_of_the_readme_runs(world: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """On fewer scenes, for an epoch; its lines are its own."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall("```python\n(.*?)```", readme, re.DOTALL)
    for long, short in IN_SMALL.items():
        assert code.count(long) == 1, long
        code = code.replace(long, short)
    names = {"short": world["short"]}
    exec(code, names)
    assert 0 < names["result"].rsum <= 600
    assert "16 images, 80 texts" in capsys.readouterr().out


def test_the_same_arrays_give_the_number_of_the_command_line(world: dict[str, Any]) -> None:
    embedded = dp.encode("runs/x", world["data"], "test", out="embedded")
    rows = embedded.images.rows, embedded.texts.rows
    given = dp.evaluate(*rows, text_image=embedded.caption_image)
    folder = dp.evaluate("embedded", out="evaluation")
    assert given.values() == folder.values() == dp.evaluate("runs/x", world["data"]).values()
    assert given.scores == dp.evaluate(*map(np.float64, rows), text_image=embedded.caption_image).scores
    command("evaluate embedded --out printed")
    assert dp.Result.open("printed/evaluation").scores == given.scores


def test_truth_is_the_diagonal_where_nothing_is_said() -> None:
    rows = np.random.default_rng(0).standard_normal((6, 4))
    both = dp.evaluate(rows, rows, ["R@1", dp.measures.mAP @ 3]).values()
    assert both == {"i2t R@1": 1, "t2i R@1": 1, "i2t mAP@3": 1, "t2i mAP@3": 1}
    assert dp.evaluate(rows @ rows.T, measures=dp.measures.MRR).value("MRR", "i2t") <= 1
    with pytest.raises(UsageError, match="6 images and 3 texts are not pairs"):
        dp.evaluate(rows, rows[:3])
    with pytest.raises(UsageError, match="needs a cut-off"):
        dp.evaluate(rows, rows, dp.measures.R)
    with pytest.raises(dp.DiptychError, match="unknown measure 'mine'"):
        dp.evaluate(rows, rows, replace(dp.measures.MRR, name="mine"))


def test_a_protocol_says_whose_truth_it_is_of(world: dict[str, Any]) -> None:
    embedded = dp.encode("runs/x", world["data"], "test")
    own = dp.GroundTruth.from_caption_image(embedded.caption_image, 16)
    moved = dp.GroundTruth.from_caption_image(np.roll(embedded.caption_image, 1), 16)
    lines = [dp.evaluate(embedded, ground_truth=one).protocol_line() for one in (None, own, moved)]
    assert lines[0] == lines[1] != lines[2]
    assert "given" in lines[2]


def test_what_was_added_to_an_index_is_shown_after_it_is_opened_again(world: dict[str, Any]) -> None:
    index, image = dp.build_index(world["encoder"], world["data"], out="index"), world["data"].image(0)
    image.save("mine.png")
    assert (index.add(image), index.add(["mine.png"])) == (["new-0"], ["mine.png"])
    index.save("index")
    again = dp.open_index("index", world["encoder"])
    assert again.add(image) == ["new-1"]
    hits = {hit.name: hit for hit in again.find(image, k=4, paths=True)[0]}
    assert {"new-0", "new-1", "mine.png"} <= {*hits}
    assert (hits["mine.png"].path, hits["new-0"].path) == (str(Path("mine.png").resolve()), "")
    assert hits["mine.png"].image().size == hits["new-1"].image().size == image.size
    assert hits["new-0"].image is None
    with pytest.raises(dp.DiptychError, match=r"the image nothing.png does not exist"):
        again.search("nothing.png")
    with pytest.raises(UsageError, match="takes no images"):
        dp.build_index(world["encoder"], world["data"], of="texts").add(image)
    with pytest.raises(UsageError, match="no encoder for new images"):
        Searcher(open_index("index")).add(image)


def test_a_head_is_chosen_by_validation_or_not_at_all(world: dict[str, Any]) -> None:
    quick = {"epochs": 1, "batch_size": 16}
    small = {"vocabulary": {"size": 60}, "out": "chosen"}
    alone = world["data"].split("train")
    with pytest.raises(UsageError, match="select = best needs validation"):
        dp.sparsify(world["encoder"], alone, training={**quick, "select": "best"}, **small)
    with pytest.raises(UsageError, match="has no split 'train'"):
        dp.sparsify(world["encoder"], world["data"].split("test"), **small)


def test_values_per_fold_have_the_mean_that_is_printed() -> None:
    rng = np.random.default_rng(1)
    images, texts = rng.standard_normal((12, 5)), rng.standard_normal((24, 5))
    found = dp.evaluate(images, texts, text_image=np.repeat(np.arange(12), 2), protocol="folds(3)")
    each = found.folds()
    assert len(each) == 3
    for name, value in found.values().items():
        assert np.mean([fold[name] for fold in each]) == pytest.approx(value, abs=1e-12)


def test_results_show_themselves(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = dp.evaluate(world["encoder"], world["data"])
    assert repr(found).startswith("<Result on scenes test: 16 images, 80 texts; i2t R@1")
    assert "image → text" in str(found)
    assert "\x1b" not in str(found)
    page = found._repr_html_()
    assert page.count("<table") == 1
    assert "<svg" in page
    frame = found.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.iloc[0, 1] == found.value("R@1", "i2t")
    hits = dp.build_index(world["encoder"], world["data"]).search("a <b>", k=2)
    assert hits._repr_html_().count("<img") == 2
    assert "<b>" not in hits._repr_html_()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install" in dp.evaluate(world["encoder"], world["data"])._repr_html_()
    assert repr(world["data"]).startswith("<Collection scenes: 80 images")
    assert repr(dp.losses.InfoNCE(0.05)) == "InfoNCE(temperature=0.05)"
    assert "finished" in repr(dp.Run.open("runs/x"))


class Colours(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images.mean(dim=(2, 3)))


class Letters(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(128, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.bag(tokens)


def as_pixels(image: Any) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255)


def as_letters(texts: list[str]) -> torch.Tensor:
    return torch.tensor([[min(ord(letter), 127) for letter in text.ljust(40)[:40]] for text in texts])


@contextmanager
def stopped_after(calls: int) -> Iterator[None]:
    asked = iter([False] * calls)
    with stop_when(lambda: next(asked, True)):
        yield


def test_own_towers_are_evaluated_trained_and_kept(world: dict[str, Any], capfd: Any) -> None:
    torch.manual_seed(0)
    images, texts = Colours(), Letters()
    encoder = dp.DualEncoder.wrap(images, texts, as_pixels, as_letters, name="letters")
    before = encoder.fingerprint
    assert encoder.encode_texts("one").shape == (1, 8)
    untrained = dp.evaluate(encoder, world["data"])
    fast = {**SHORT, "stages.0.learning_rate": 0.05, "stages.0.warmup": 0}
    given = {"encoder": encoder, "out": "runs/towers", "settings": fast}
    with stopped_after(3), pytest.raises(Interrupted, match="resume with: the same call"):
        dp.train("clip", world["data"], **given)
    assert encoder.fingerprint == before
    with pytest.raises(AssertionError):
        command("train --resume runs/towers")
    assert "letters was given in Python" in capfd.readouterr().err
    run = dp.train("clip", world["data"], **given)
    assert encoder.fingerprint != before
    trained = dp.evaluate(encoder, world["data"])
    assert trained.values() != untrained.values()
    again = dp.DualEncoder.wrap(Colours(), Letters(), as_pixels, as_letters, name="letters")
    with pytest.raises(dp.DiptychError, match="was begun with fine_tune"):
        dp.train("clip", world["data"], **{**given, "encoder": again})
    assert again.load_weights(run.folder).fingerprint == encoder.fingerprint
    assert (again.temperature, dp.train("clip", world["data"], **given).numbers) == (
        encoder.temperature,
        run.numbers,
    )
    with pytest.raises(UsageError, match="modules that were given in Python"):
        dp.load(run)
    cropped = {**fast, "augmentation.scale": [0.5, 1.0]}
    with pytest.raises(dp.DiptychError, match="preprocessing was given in Python"):
        dp.train("clip", world["data"], encoder=again, out="runs/cropped", settings=cropped)
    assert not Path("runs/cropped").exists()


def test_an_own_encoder_is_another_where_anything_of_it_is() -> None:
    def made(images: Any, texts: Any, pixels: Any = as_pixels, letters: Any = as_letters) -> Any:
        return dp.DualEncoder.wrap(images, texts, pixels, letters)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.images, self.texts = Colours(), Letters()

        def encode_image(self, images: torch.Tensor) -> torch.Tensor:
            return self.images(images)

        def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.texts(tokens)

    model = Model()
    first = made(model.images, model.texts)
    seen = [first.fingerprint]
    assert made(model.images, model.texts).fingerprint == first.fingerprint
    seen.append(made(model.encode_image, model.encode_text).fingerprint)
    with torch.no_grad():
        model.texts.bag.weight[ord("%")] += 1  # a token that is in none of the sentences it is named by
    seen += [first.fingerprint, made(model.encode_image, model.encode_text).fingerprint]
    square = lambda image: as_pixels(image.resize((64, 64)))  # noqa: E731
    seen.append(made(model.images, model.texts, square).fingerprint)
    short = lambda texts: as_letters([text[:30] for text in texts])  # noqa: E731
    seen.append(made(model.images, model.texts, letters=short).fingerprint)
    assert len({*seen}) == len(seen) == 6
    assert "Colours" in repr(first)


def test_an_encoder_that_is_trained_further_is_left_as_it_was(world: dict[str, Any]) -> None:
    encoder = copy.deepcopy(world["encoder"])
    del encoder.loaded_from  # one of memory, that no folder holds
    before, rows = encoder.fingerprint, encoder.encode_texts("a red square")
    run = dp.train("clip", world["data"], encoder=encoder, out="runs/further", settings=SHORT)
    assert (encoder.encode_texts("a red square") == rows).all()
    assert dp.load(run).fingerprint != before == encoder.fingerprint


def test_functions_are_wrapped_but_not_trained(world: dict[str, Any]) -> None:
    encoder = dp.DualEncoder.wrap(
        lambda images: np.array([np.asarray(one).mean((0, 1)) for one in images]),
        lambda texts: np.array([[len(text), text.count("e"), 1.0] for text in texts]),
    )
    assert dp.evaluate(encoder, world["data"], "R@1").protocol.n_images == 16
    with pytest.raises(UsageError, match="cannot be trained"):
        dp.train("clip", world["data"], encoder=encoder, out="runs/none", settings=SHORT)
    with pytest.raises(UsageError, match="cannot be saved"):
        encoder.save("saved")
    wrong = dp.DualEncoder.wrap(lambda images: np.ones(3), lambda texts: np.ones(3))
    with pytest.raises(dp.DiptychError, match=r"gives shape \(3,\)"):
        wrong.encode_texts(["a"])


def test_data_is_read_from_what_is_at_hand(world: dict[str, Any], scenes_folder: Path) -> None:
    whole = world["data"]
    assert dp.read(whole, "test").n_images == 16
    rows = [{"image": f"{number}.png", "caption": text} for number, text in enumerate(("a dog", "a cat"))]
    for table in (rows, pd.DataFrame(rows)):
        assert list(dp.read(table).captions) == ["a dog", "a cat"]
    assert dp.read(scenes_folder, captions="first").n_captions == 80
    assert dp.Collection.from_pairs(["0.png", "0.png"], ["a dog", "one dog"]).n_images == 1


def test_an_interrupted_call_is_the_same_call(world: dict[str, Any]) -> None:
    first = dp.train("scenes", world["data"], out="runs/y", settings=SHORT)
    stamp = (first.best / "model.safetensors").stat().st_mtime_ns
    assert dp.train("scenes", world["data"], out="runs/y", settings=SHORT).numbers == first.numbers
    assert (first.best / "model.safetensors").stat().st_mtime_ns == stamp
    with pytest.raises(UsageError, match="another recipe"):
        dp.train("scenes", world["data"], out="runs/y", settings={**SHORT, "seed": 1})


def test_losses_measures_and_perturbations_have_names() -> None:
    losses = {type(kind()).__name__ for kind in dp.OBJECTIVES}
    assert len(losses) >= 12
    assert losses <= set(dir(dp.losses))
    assert {re.sub("-", "_", one.name) for one in dp.PERTURBATIONS} == set(dir(dp.perturbations))
    typed = re.findall(r"^    (\w+): ", inspect.getsource(dp.measures), re.MULTILINE)
    assert sorted(typed) == dir(dp.measures)
    for name in dir(dp.measures):
        assert getattr(dp.measures, name).description
    for namespace in (dp.measures, dp.perturbations):
        with pytest.raises(AttributeError, match="there are"):
            namespace.nonsense  # noqa: B018


def test_what_is_kept_is_never_taken_for_something_else(world: dict[str, Any]) -> None:
    """A finished run of other data or another loss, an index of a head, folders of one name, embeddings with data."""
    data = world["data"]
    dp.train("scenes", data, loss=lambda scores, positives: scores.sum(), out="runs/z", settings=SHORT)
    others = torch.nn.functional.mse_loss, lambda scores, positives: scores.mean()
    for changed in (*({"loss": one} for one in others), {"data": data.first_captions(1)}):
        given = {"data": data, "loss": lambda scores, positives: scores.sum(), **changed}
        whole = given.pop("data")
        with pytest.raises(dp.DiptychError, match="begun with|another recipe"):
            dp.train("scenes", whole, out="runs/z", settings=SHORT, **given)
    head = dp.sparsify(
        "runs/x", data, "head", training={"epochs": 1, "batch_size": 16}, vocabulary={"size": 60}
    )
    made = dp.build_index(head, data, out="bags").search("a red square", k=3)
    assert [hit.name for hit in dp.open_index("bags").search("a red square", k=3)] == [
        hit.name for hit in made
    ]
    for folder in ("a/run", "b/run"):
        dp.evaluate("runs/x", data, "R@1", out=folder)
    assert len(dp.compare("a/run", "b/run", samples=0).runs) == 2
    dp.encode("runs/x", data, out="embedded")
    with pytest.raises(UsageError, match="embeddings are given"):
        dp.evaluate("embedded", data)
    with pytest.raises(UsageError, match="no single query"):
        dp.open_index("bags").search(dp.load("head").encode_texts(["a red star", "a cross"]))


def test_what_is_no_encoder_and_no_data_is_refused_by_name(world: dict[str, Any]) -> None:
    data, rows = world["data"], np.eye(4)
    Path("scenes").mkdir()
    for call, text in (
        (lambda: dp.load(rows), "'ndarray' object is no encoder"),
        (lambda: dp.evaluate(None, data), "'NoneType' object is no encoder"),
        (lambda: dp.read(3), "'int' object is no dataset"),
        (lambda: dp.read(data, images="folder"), "images is of what is read"),
        (lambda: dp.read("scenes", n_train=4), "a folder scenes is here"),
        (lambda: dp.compare(rows, rows), "'ndarray' object cannot be compared"),
        (lambda: dp.run_study("ltd.table-1", data), "got a 'Collection' object"),
        (lambda: dp.evaluate(rows, rows, split="test"), "embeddings are given"),
        (lambda: dp.evaluate(rows[0], rows[0]), r"one row per item, \(n, d\)"),
    ):
        with pytest.raises(dp.DiptychError, match=text):
            call()


def test_gradients_are_counted_of_one_loss_that_has_queries(world: dict[str, Any]) -> None:
    for loss, options, text in (
        (torch.nn.functional.mse_loss, {}, "mse_loss gives one number for a batch"),
        (dp.losses.Triplet(0.2), {"objective": "triplet"}, "both a loss and the name"),
    ):
        with pytest.raises(UsageError, match=text):
            dp.gradient_counts(world["encoder"], world["data"], loss, batch_size=8, **options)


def test_names_that_moved_still_work_with_a_warning() -> None:
    from diptych import _MOVED

    for name, module in _MOVED.items():
        with pytest.warns(DeprecationWarning, match=f"diptych.{name} is {module}.{name}"):
            assert getattr(dp, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dp.nonsense  # noqa: B018


def test_a_lazy_name_whose_library_is_missing_says_the_pip_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy_room").mkdir()
    lines = ["from lazy_room import inner as inner", "from lazy_room.inner import value as value"]
    got = "from diptych.core.extras import lazy_names\n__getattr__, __dir__ = lazy_names(__name__)\n"
    text = f"TYPE_CHECKING = False\nif TYPE_CHECKING:\n    {lines[0]}\n    {lines[1]}\n{got}"
    (tmp_path / "lazy_room" / "__init__.py").write_text(text)
    (tmp_path / "lazy_room" / "inner.py").write_text("import duckdb\nvalue = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    room = importlib.import_module("lazy_room")
    for name in ("inner", "value"):
        with pytest.raises(dp.DiptychError, match=rf"lazy_room.{name} needs duckdb.*diptych\[commerce\]"):
            getattr(room, name)
