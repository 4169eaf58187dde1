from __future__ import annotations

import json
import socket
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refused

from diptych.core.errors import MismatchError, RecipeError, StorageError, UnknownNameError, UsageError
from diptych.core.locking import exclusive_folder
from diptych.training import fit
from diptych.training.recipe import Recipe, collection_of, load_recipe, parse_recipe, recipe_names
from diptych.training.run import Run, TrainingFolder, trained_objective
from diptych.training.sections import Data


def begun(folder: Path, recipe: Recipe) -> Run:
    run = Run.prepare(folder, recipe)
    run.begin({"data": "d"})
    return run


def test_a_run_is_its_folder(tmp_path: Path, recipe: Recipe) -> None:
    run = Run.prepare(tmp_path / "r", recipe)
    run.begin({"data": "d"})
    opened = Run.open(run.folder)
    assert opened.recipe == recipe
    assert not opened.finished
    refused(UsageError, "already holds a run", Run.prepare, run.folder, recipe)
    refused(UsageError, "holds no run", Run.open, tmp_path)


def test_nothing_is_written_before_it_begins(tmp_path: Path, recipe: Recipe) -> None:
    run, other = (Run.prepare(tmp_path / "r", recipe) for _ in range(2))
    run.keep(lambda: (run.folder / "targets").mkdir(parents=True))
    assert not run.folder.exists()
    run.begin({})
    assert (run.folder / "targets").is_dir()
    refused(UsageError, "holds another run by now", other.begin, {})
    environment = (run.folder / "environment.json").read_text()
    assert "torch" in environment
    assert socket.gethostname() not in environment


def test_auto_is_bfloat16_where_the_device_computes_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, has, precision in (
        ("auto", True, "bf16-mixed"),
        ("auto", False, "32-true"),
        ("32-true", True, "32-true"),
    ):
        monkeypatch.setattr(fit, "multiplies_bfloat16", lambda device, has=has: has)
        assert fit._precision(given, "cpu") == precision


REQUEST = {"data": "d0", "loss": {"eta": 0.5, "terms": (1, 2)}, "validation": None}


def test_it_is_begun_once_and_ends_with_numbers(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "t")
    assert not folder.begun
    assert not folder.finished
    folder.begin(REQUEST)
    folder.begin(REQUEST)
    assert folder.begun
    assert folder.numbers == {}
    folder.checkpoint.mkdir()
    folder.finish(epochs=3, seconds=1.5)
    assert folder.finished
    assert folder.numbers == {"epochs": 3, "seconds": 1.5}
    assert folder.begun_with["loss"] == {"eta": 0.5, "terms": [1, 2]}
    assert not folder.checkpoint.exists()


def test_another_training_is_refused(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path)
    folder.begin(REQUEST)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"data": "d1"}, "was begun with data = d0, requested is d1"),
        ({"loss": {"eta": 0.1, "terms": [1, 2]}}, "was begun with loss.eta = 0.5, requested is 0.1"),
        ({"loss": {"eta": 0.5}}, r"was begun with loss.terms = \[1, 2\], requested is None"),
        ({"objective": "mine"}, "was begun with objective = None, requested is mine"),
    ]
    for change, words in cases:
        for attempt in (folder.check, folder.begin):
            refused(MismatchError, words, attempt, {**REQUEST, **change})
    folder.check({"data": "d0"}, whole=False)


def test_one_process_at_a_time_and_no_empty_folder(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "t")
    with folder.held():
        assert folder.folder.is_dir()
    assert not folder.folder.exists()
    with folder.held():
        folder.begin(REQUEST)
    with exclusive_folder(folder.folder):
        refused(StorageError, "another process is working in", folder.held().__enter__)
    assert folder.begun


def test_metrics_survive_a_cut_line_and_can_be_rewound(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path)
    assert list(folder.metrics()) == []
    for step in range(1, 5):
        folder.log(step=step, loss=1 / step)
    with open(tmp_path / "metrics.jsonl", "a") as handle:
        handle.write('{"step": 5, "lo')
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3, 4]
    folder.rewind_metrics(2)
    folder.log(step=3, loss=0.0)
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3]


def run_with(folder: Path, objective: str, lines: list[dict[str, Any]]) -> Run:
    recipe = parse_recipe(f"{objective}\n[[stages]]\nepochs = 2\nlearning_rate = 1e-3\n", "test")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Run(folder, recipe)


LINES: list[dict[str, Any]] = [
    {"step": 1, "loss": 2.0, "temperature": 0.09, "bias": -9.0},
    {"step": 2, "loss": 1.5, "temperature": 0.08, "bias": -8.0},
    {"step": 2, "epoch": 1, "validation": {"rsum": 50.0}},
    {"step": 3, "loss": 1.0, "temperature": 0.01, "bias": -1.0},
    {"step": 3, "epoch": 2, "validation": {"rsum": 40.0}},
]


def test_what_was_learned_at_the_best_epoch(tmp_path: Path) -> None:
    for objective, options, expected in (
        ('name = "siglip"', {}, (0.08, -8.0)),
        ('name = "siglip"', {"bias": -3.0}, (0.08, -3.0)),
        ('name = "infonce"\ntemperature = 0.3', {}, (0.3,)),  # not learned: the recipe's
    ):
        found: Any = trained_objective(run_with(tmp_path, f"[objective]\n{objective}", LINES), **options)
        values = [torch.as_tensor(getattr(found, name, 0.0)).item() for name in ("temperature", "bias")]
        assert values[: len(expected)] == pytest.approx(expected)


def test_what_the_metrics_do_not_say(tmp_path: Path) -> None:
    plain = '[objective]\nname = "infonce"'
    run = run_with(tmp_path, f"{plain}\nlearn_temperature = true", LINES[:0])
    error = refused(UsageError, "learned a temperature that its metrics", trained_objective, run)
    assert "--option temperature=VALUE" in error.fix
    run = run_with(tmp_path, plain, LINES)
    refused(RecipeError, "no option 'margin'", trained_objective, run, margin=0.2)


def test_a_corrupt_folder_is_named(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path)
    folder.begin(REQUEST)
    for content in ("[]", "{}", "", "null", '{"state": "running"}', "{" * 3000):
        (tmp_path / "training.json").write_text(content)
        assert refused(StorageError, r"training\.json", folder.check, REQUEST).fix
    for line in ("no line of ours", "[1]", '{"loss": 1}'):
        (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n' + line + "\n")
        refused(StorageError, r"metrics\.jsonl, line 2 ", list, folder.metrics())


def test_other_things_stay(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    TrainingFolder(tmp_path).check(REQUEST)
    TrainingFolder(tmp_path).check(REQUEST, allowed=("holiday.jpg",))
    refused(UsageError, "holds other things", TrainingFolder(tmp_path).check, REQUEST, allowed=())


MINIMAL = "[[stages]]\nepochs = 1\nlearning_rate = 0.1\n"


SHUFFLED = "[reconstruction]\ntargets = { shuffled = true }\n"


def test_what_is_wrong_is_named_in_one_line() -> None:
    for text, message in (
        (MINIMAL + "colour = 3", "unknown key 'stages.0.colour'"),
        ("nmae = 'x'\n" + MINIMAL, "unknown key 'nmae'.*known there: .*name"),
        (
            MINIMAL + "[model.image]\nbackbon = 'x'",
            "unknown key 'model.image.backbon'.*known there: .*backbone",
        ),
        ("seed = 'x'\n" + MINIMAL, "seed: Input should be a valid integer"),
        ("[[stages]]\nepochs = 0\nlearning_rate = 1", "stages.0.epochs: Input should be greater"),
        ("name = 'x'", "stages: Field required"),
        (MINIMAL + "[model.text]\nkind = 'targets'\ntargets = { shuffled = true }", "cannot be shuffled"),
        (MINIMAL + SHUFFLED + "[shortcuts]\nsetup = 'unique'\nin_targets = true", "cannot be shuffled"),
        ("name = ", "is not TOML"),
        (MINIMAL + "[objective]\ntemperature = 1", "objective has no name"),
        (MINIMAL + "[objective]\nname = 'triplet'\nmargn = 1", "'triplet' has no option 'margn'.*margin=0.2"),
        (MINIMAL + "[objective]\nname = 'triplet'\nmargin = '0.2'", "'margin' of .* is '0.2'.*a number"),
        (
            MINIMAL + "[objective]\nname = 'mvn'\n[model]\nsimilarity = 'order'",
            "'mvn' scores images.*'order'",
        ),
        (MINIMAL + "[optimizer]\nweight_decay = 0.1", "weight_decay 0.1 does nothing with adam"),
        ("[data]\npath = 'x'\nscenes = {}\n" + MINIMAL, "either path or scenes"),
        ("[features]\nviews = 1\n" + MINIMAL + "train = ['*']", "stage 1 trains the backbone"),
        ("[features]\n[augmentation]\n" + MINIMAL, "set features.views instead"),
        ("fine_tune = 'a'\n[model]\nwidth = 8\n" + MINIMAL, r"leave the section \[model\] out"),
        ("fine_tune = 'a'\n[features]\nviews = 1\n" + MINIMAL, r"leave \[features\] out"),
        ("fine_tune = 'a'\nwarm_start = 'b'\n" + MINIMAL, "two beginnings"),
    ):
        error = refused(RecipeError, message, parse_recipe, text, "r.toml")
        assert "\n" not in str(error)
        assert error.exit_code == 2


def test_overrides_reach_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(MINIMAL)
    overrides = {"stages.0.epochs": 7, "batches.size": 9, "objective.name": "triplet", "data.path": "x"}
    recipe = load_recipe(file, overrides)
    assert (recipe.stages[0].epochs, recipe.batches.size) == (7, 9)
    assert (recipe.objective, recipe.data.path) == ({"name": "triplet"}, "x")
    refused(RecipeError, "has no place for 'stages.4.epochs'", load_recipe, file, {"stages.4.epochs": 7})
    refused(RecipeError, "unknown key 'batches.sise'", load_recipe, file, {"batches.sise": 7})
    refused(UnknownNameError, "unknown recipe 'scens'.*did you mean 'scenes'", load_recipe, "scens")


def test_the_recipe_differs_from_the_one_it_controls_for_in_the_tower_only() -> None:
    control = load_recipe("bag-of-words").model_dump()
    other = load_recipe("flickr8k").model_dump()
    assert control["model"].pop("text")["kind"] == "bag"
    assert other["model"].pop("text")["kind"] == "gru"
    assert control["model"]["image"].pop("weights") is not None
    assert other["model"]["image"].pop("weights") is None
    for text in ("name", "description"):
        assert control.pop(text) != other.pop(text)
    assert control == other


def test_fewer_images_to_train_on_are_among_those_of_more(scenes_folder: Path) -> None:
    whole = collection_of(Data(path=str(scenes_folder)))
    few, more = (collection_of(Data(path=str(scenes_folder), images=count)) for count in (5, 9))
    assert set(few.split("train").image_ids) < set(more.split("train").image_ids)
    assert [few.split("train").n_images, more.split("train").n_images] == [5, 9]
    assert few.split("test").image_ids == whole.split("test").image_ids
    assert few.split("val").captions == whole.split("val").captions
    with pytest.raises(UsageError, match="data.images 99999 of"):
        collection_of(Data(path=str(scenes_folder), images=99999))


def test_every_recipe_can_be_read_and_survives_toml() -> None:
    for name in recipe_names():
        recipe = load_recipe(name)
        assert parse_recipe(recipe.to_toml(), name) == recipe
        text = (resources.files("diptych.training") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
        comment = text.split("\n\n")[0]
        assert f"diptych train {name}" in comment, f"{name} does not begin with its command"
        assert "expect" in comment.lower(), f"{name} does not say the number to expect"
    tuned = load_recipe("clip", {"fine_tune": "somewhere", "data.path": "elsewhere"})
    (stage,) = tuned.stages
    assert (stage.epochs, stage.learning_rate, stage.warmup, stage.train) == (5, 2e-5, 100, ("*",))
    assert (tuned.batches.size, tuned.optimizer.name, tuned.optimizer.clip) == (256, "adamw", 2.0)
