"""The front door: every public name is listed once, and what the documentation shows of them runs."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from commands import command

import diptych as dp
from diptych import api
from diptych.core.errors import UsageError

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


def test_values_per_fold_have_the_mean_that_is_printed() -> None:
    rng = np.random.default_rng(1)
    images, texts = rng.standard_normal((12, 5)), rng.standard_normal((24, 5))
    found = dp.evaluate(images, texts, text_image=np.repeat(np.arange(12), 2), protocol="folds(3)")
    each = found.folds()
    assert len(each) == 3
    for name, value in found.values().items():
        assert np.mean([fold[name] for fold in each]) == pytest.approx(value, abs=1e-12)


def test_results_show_themselves(world: dict[str, Any]) -> None:
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


def test_own_towers_are_evaluated_trained_and_kept(world: dict[str, Any]) -> None:
    torch.manual_seed(0)
    images, texts = Colours(), Letters()
    encoder = dp.DualEncoder.wrap(images, texts, as_pixels, as_letters, name="letters")
    before = encoder.fingerprint
    assert encoder.encode_texts("one").shape == (1, 8)
    untrained = dp.evaluate(encoder, world["data"])
    fast = {**SHORT, "stages.0.learning_rate": 0.05, "stages.0.warmup": 0}
    run = dp.train("clip", world["data"], encoder=encoder, out="runs/towers", settings=fast)
    assert encoder.fingerprint != before
    trained = dp.evaluate(encoder, world["data"])
    assert trained.values() != untrained.values()
    again = dp.DualEncoder.wrap(Colours(), Letters(), as_pixels, as_letters).load_weights(run.folder)
    assert again.fingerprint == encoder.fingerprint
    with pytest.raises(UsageError, match="modules that were given in Python"):
        dp.load(run)


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
    for call, text in (
        (lambda: dp.load(rows), "'ndarray' object is no encoder"),
        (lambda: dp.evaluate(None, data), "'NoneType' object is no encoder"),
        (lambda: dp.read(3), "'int' object is no dataset"),
        (lambda: dp.read(data, images="folder"), "images is of what is read"),
        (lambda: dp.compare(rows, rows), "'ndarray' object cannot be compared"),
        (lambda: dp.run_study("ltd.table-1", data), "got a 'Collection' object"),
        (lambda: dp.evaluate(rows, rows, split="test"), "embeddings are given"),
        (lambda: dp.evaluate(rows[0], rows[0]), r"one row per item, \(n, d\)"),
    ):
        with pytest.raises(dp.DiptychError, match=text):
            call()


def test_names_that_moved_still_work_with_a_warning() -> None:
    from diptych import _MOVED

    for name, module in _MOVED.items():
        with pytest.warns(DeprecationWarning, match=f"diptych.{name} is {module}.{name}"):
            assert getattr(dp, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dp.nonsense  # noqa: B018
