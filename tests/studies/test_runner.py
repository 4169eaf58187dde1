"""Running a study: rows, recipes, the plan, what is used again, what is refused, what is kept."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from study_runs import run_study

from diptych.core.errors import (
    Interrupted,
    RecipeError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.core.locking import exclusive_folder
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.scenes import make_scenes
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.evaluate_encoder import evaluate_encoder
from diptych.evaluation.stress.queries import part_of
from diptych.studies.brittleness_measuring import BESIDE, with_whole_folder
from diptych.studies.results import Results, StudyFolder, collect, entries_of
from diptych.studies.rows import Choices, recipe_of, setting_for, way_of, why_left_out
from diptych.studies.runner import plan_of
from diptych.studies.study import PUBLISHED, STUDIES, SettingName, Study
from diptych.training.recipe import Recipe


def test_a_base_is_planned_once_and_first(small_study: Study) -> None:
    plan = plan_of(small_study, [small_study.row("onwards")], [1, 2], "quick")
    jobs = [("vsepp-triplet", 0, False), ("onwards", 1, True), ("onwards", 2, True)]
    assert [(job.row.name, job.seed, job.shown) for job in plan] == jobs
    assert [job.place for job in plan] == ["row 1 of 2", "row 2 of 2, seed 1 of 2", "row 2 of 2, seed 2 of 2"]
    both = plan_of(small_study, [small_study.row("onwards"), small_study.row("vsepp-triplet")], [0], "quick")
    assert [(job.row.name, job.shown) for job in both] == [("vsepp-triplet", True), ("onwards", True)]


@pytest.fixture(scope="module")
def made(
    small_study: Study, choices: Choices, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Results, list[str]]:
    """Two rows of two seeds, and what was told meanwhile."""
    folder, told = tmp_path_factory.mktemp("made") / "out", []
    some: dict[str, Any] = {"rows": ["onwards", "1.1"], "seeds": [0, 1], "tell": told.append}
    results = run_study(small_study, folder, choices, command="diptych study run made-up.table-1", **some)
    return folder, results, told


@pytest.fixture
def copied(made: tuple[Path, Results, list[str]], tmp_path: Path) -> Path:
    """The folder, for tests that change it."""
    return Path(shutil.copytree(made[0], tmp_path / "out"))


def test_a_study_is_run_and_kept(made: tuple[Path, Results, list[str]]) -> None:
    folder, results, told = made
    rows = [("vsepp-triplet", 0), ("vsepp-triplet", 1), ("onwards", 0), ("onwards", 1)]
    assert [(entry.row, entry.seed) for entry in results.entries] == rows
    about = StudyFolder.open(folder / "study.json")
    assert (about.study, about.command) == ("made-up.table-1", "diptych study run made-up.table-1")
    assert told[0] == "row 1 of 2, seed 1 of 2: Triplet: training"
    # The third row has gone on from the first row's weights.
    recipe = (folder / "rows" / "onwards" / "seed-1" / "recipe.toml").read_text()
    assert f'warm_start = "{folder / "rows" / "vsepp-triplet" / "seed-0"}"' in recipe
    entry = results.of("vsepp-triplet")[0]
    measured = entry.measured()
    assert measured is not None
    assert (measured.on.dataset, measured.on.split, measured.on.images) == ("scenes", "test", 16)
    assert "i2t mAP@5" + PUBLISHED in measured.values
    recalls = [measured.values[f"{d} R@{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10)]
    assert measured.values["rsum"] == pytest.approx(sum(recalls))
    assert measured.values["i2t average recall"] == pytest.approx(sum(recalls[:3]) / 3)
    assert measured.trajectory is not None
    assert len(measured.trajectory.steps) == 15  # 240 captions in batches of 16
    assert len(measured.trajectory.rsum) == 1
    assert "--measure mAP-hits@5" in measured.commands[0]
    assert entry.cpu_seconds > 0
    assert "batches.size" in entry.changed


def test_what_is_there_is_used_again(
    small_study: Study, choices: Choices, made: tuple[Path, Results, list[str]]
) -> None:
    told: list[str] = []
    again = run_study(small_study, made[0], choices, rows=["1.1"], seeds=[0], tell=told.append)
    assert told == ["row 1 of 1: Triplet: there already"]
    assert again == made[1]  # what earlier calls gave is there too
    assert again.evidence().figures["onwards"]["rsum"].seeds == 2


def test_the_measured_number_is_that_of_evaluate(
    choices: Choices, made: tuple[Path, Results, list[str]], tmp_path: Path
) -> None:
    """Features cached for the whole study give the rows that the encoder gives for the pictures."""
    measured = made[1].of("vsepp-triplet")[0].measured()
    assert measured is not None
    assert choices.data is not None
    part = read_collection(choices.data["path"]).split("test")
    encoder = DualEncoder.load(made[0] / "rows" / "vsepp-triplet" / "seed-0" / "best")
    by_hand = evaluate_encoder(encoder, part, tmp_path / "by hand", samples=0)
    for way in ("i2t", "t2i"):
        recalls = [100 * by_hand.value(f"R@{k}", way) for k in (1, 5, 10)]
        assert [measured.values[f"{way} R@{k}"] for k in (1, 5, 10)] == pytest.approx(recalls)


def test_interrupted_it_goes_on_to_the_same_numbers_and_no_other_process_trains_it(
    small_study: Study, choices: Choices, made: tuple[Path, Results, list[str]], tmp_path: Path
) -> None:
    """The folder of a run that another process trains is refused; one that is finished is free to use."""
    folder = tmp_path / "rows" / "vsepp-triplet" / "seed-0"
    some: dict[str, Any] = {"rows": ["1.1"], "seeds": [0]}
    steps = iter([False] * 5 + [True] * 100)

    def should_stop() -> bool:
        with pytest.raises(StorageError), exclusive_folder(folder):
            pass
        return next(steps)

    with pytest.raises(Interrupted):
        run_study(small_study, tmp_path, choices, should_stop=should_stop, **some)
    assert not list(entries_of(small_study, tmp_path))
    with exclusive_folder(folder), pytest.raises(StorageError, match="another process is working in"):
        run_study(small_study, tmp_path, choices, **some)
    told: list[str] = []
    resumed = run_study(small_study, tmp_path, choices, tell=told.append, **some)
    assert told[0] == "row 1 of 1: Triplet: goes on"
    assert resumed.values("vsepp-triplet", "rsum") == made[1].values("vsepp-triplet", "rsum")[:1]
    with exclusive_folder(folder):
        assert run_study(small_study, tmp_path, choices, **some) == resumed


def test_nothing_is_overwritten(small_study: Study, choices: Choices, copied: Path) -> None:
    def refused(study: Study, folder: Path, chosen: Choices, said: str) -> str:
        with pytest.raises(UsageError, match=said) as caught:
            run_study(study, folder, chosen, rows=["1.1"], seeds=[0])
        return caught.value.fix

    wider = replace(choices, values={**choices.values, "model.width": 32})
    fix = refused(small_study, copied, wider, "was trained with model")
    assert fix == "choose another folder with --out"
    # A run in the home of another study: another folder beside it would have the same home.
    other = replace(small_study, name="made-up.table-2")
    guest = replace(other, rows=tuple(replace(row, home=copied.name) for row in small_study.rows))
    fix = refused(guest, copied.parent / "guest", wider, "was trained with model")
    assert fix == f"its runs are in {copied}: choose a folder in another parent folder with --out"
    refused(other, copied, choices, "holds study 'made-up.table-1'")
    pictures = make_scenes(copied.parent / "other", 48, 16, 16, size=32, seed=1, workers=1)
    refused(small_study, copied, replace(choices, data={"path": str(pictures)}), "was trained on captions")


def test_a_study_without_a_row_that_can_run(small_study: Study, choices: Choices, tmp_path: Path) -> None:
    setting = replace(small_study.settings["quick"], left_out={"vsepp-triplet": "it is Sunday"})
    sunday = replace(small_study, settings={"quick": setting})
    with pytest.raises(UsageError, match="vsepp-triplet it is Sunday"):
        run_study(sunday, tmp_path / "out", choices, rows=["1.1"])
    assert not (tmp_path / "out").exists()


def test_results_are_found_again(
    small_study: Study,
    made: tuple[Path, Results, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, results, _ = made
    runs = sorted((folder / "rows").glob("*/seed-*"))
    assert len(runs) == 4
    (found,) = collect(runs)
    every = {(one.row, one.seed): one for one in results.entries}
    assert {(one.row, one.seed): one for one in found.entries} == every
    monkeypatch.setattr(STUDIES, "get", lambda name: {"made-up.table-1": small_study}[name])
    (of_folder,) = collect([folder])
    assert of_folder == results
    with pytest.raises(UsageError, match="holds nothing that a study has measured"):
        collect([tmp_path])
    first, second, *_ = results.entries
    with pytest.raises(UsageError, match="differ"):
        Results("made-up.table-1", (first, replace(second, data="flickr8k")))


def test_further_judgements_are_measured_beside_the_own_ones(
    small_study: Study, choices: Choices, copied: Path
) -> None:
    assert choices.data is not None
    part = read_collection(choices.data["path"]).split("test")
    # Every caption is relevant to every image: then the first place is always right.
    file = copied.parent / "all.json"
    file.write_text(json.dumps({"i2t": {image: list(part.caption_ids) for image in part.image_ids}}))
    told: list[str] = []
    judged = replace(choices, positives=f"pairs:{file}")
    results = run_study(small_study, copied, judged, rows=["1.1"], seeds=[0], tell=told.append)
    assert told[-1].endswith("Triplet: measuring")  # the run is there, its measurement was another
    own, further = results.of("vsepp-triplet")[0].measurements
    assert (own.on.positives, further.on.positives) == ("own", "pairs")
    assert own.values["i2t R@1"] < 100
    assert further.values["i2t R@1"] == further.values["t2i R@1"] == 100
    assert f"--positives pairs:{file}" in further.commands[0]


GLOVE = {"model.text.word_vectors": "glove.npz"}

ALL = [
    (study.name, row.name, setting)
    for study in STUDIES
    for setting in study.settings
    for row in (*study.rows, *study.bases)
    if way_of(row, GLOVE) == "recipe"
    and why_left_out(study, row, setting, Choices(regions="regions.npy", values=GLOVE)) is None
]


def of(study: str, row: str, setting: SettingName = "paper", **choices: object) -> Any:
    """The recipe; tests read its optional parts as if they were there."""
    found = STUDIES.get(study)
    chosen = Choices(regions="regions.npy", **choices)  # type: ignore[arg-type]
    return recipe_of(found, found.row(row), setting, chosen)


def test_every_row_is_a_recipe_in_every_setting() -> None:
    for study, row, setting in ALL:
        recipe = of(study, row, setting)
        assert recipe.name == f"{STUDIES.get(study).paper.key}.{row}"
        assert (recipe.data.scenes is not None) == (setting == "quick")
        if setting == "quick":  # everything a run keeps: the recipe survives the way through TOML
            assert Recipe.model_validate(tomllib.loads(recipe.to_toml())) == recipe


@pytest.mark.parametrize("method", ["vsepp", "vsrn"])
def test_the_schedule_of_metric_learning(method: str) -> None:
    """30 epochs of 128 pairs, 2e-4 and a tenth of it after 15; SmoothAP five times as long, grouped."""
    study = "metric-learning.table-1"
    hardest = of(study, f"{method}-triplet-hardest")
    assert (hardest.batches.plan, hardest.batches.size, hardest.optimizer.clip) == ("captions", 128, 2.0)
    assert [(s.epochs, s.learning_rate, s.schedule, s.step_epochs) for s in hardest.stages] == [
        (30, 2e-4, "step", 15)
    ]
    smooth = of(study, f"{method}-smoothap")
    assert (smooth.batches.plan, smooth.batches.captions_per_image) == ("grouped", 5)
    assert (smooth.stages[0].epochs, smooth.stages[0].step_epochs) == (150, 75)
    losses = {row: of(study, f"{method}-{row}").objective for row in ("triplet", "nt-xent", "smoothap")}
    assert losses == {
        "triplet": {"name": "triplet", "margin": 0.2},
        "nt-xent": {"name": "nt-xent", "temperature": 0.1},
        "smoothap": {"name": "smoothap", "temperature": 0.01},
    }


def test_the_tables_of_one_study_share_their_recipes() -> None:
    for row in ("vsepp-triplet", "vsepp-triplet-hardest"):
        assert of("metric-learning.table-1", row) == of("metric-learning.table-2", row)
    assert of("ltd.table-1", "ltd-constraint") == of("ltd.figure-2", "ltd-constraint")
    assert of("convse.table-3", "convse++") == of("convse.table-2", "convse++")


def test_the_schedule_of_convse() -> None:
    base = of("convse.table-3", "vse++")
    assert [(s.epochs, s.learning_rate, s.train) for s in base.stages][1] == (15, 2e-5, ("*",))
    assert base.objective == {"name": "triplet-hardest", "margin": 0.2}
    head = of("convse.table-3", "convse++")
    assert (head.model.projection.base, head.model.projection.hidden, head.model.width) == (1024, 2048, 1024)
    assert [(s.epochs, s.learning_rate, s.schedule) for s in head.stages] == [(30, 2e-5, "constant")]
    assert head.batches.size == 256
    assert of("convse.table-2", "convse++-d64").model.width == 64
    assert of("convse.table-2", "convse++-t0.5").objective["temperature"] == 0.5
    assert of("convse.table-3", "mvn").model.projection is None


def test_the_schedule_of_ltd() -> None:
    baseline = of("ltd.table-1", "baseline")
    assert baseline.optimizer.name == "adamp"
    assert [(s.epochs, s.learning_rate, s.schedule, s.per) for s in baseline.stages] == [
        (30, 2e-4, "cosine", "epoch"),
        (30, 2e-5, "cosine", "epoch"),
    ]
    assert baseline.objective == {"name": "infonce", "temperature": 0.05}
    assert (baseline.averaging.share, baseline.averaging.checkpoints) == (0.1, 5)
    assert baseline.reconstruction is None
    constraint = of("ltd.table-1", "ltd-constraint").reconstruction
    assert (constraint.kind, constraint.constraint.bound) == ("latent", 0.2)
    words = of("ltd.table-1", "itd-constraint").reconstruction
    assert (words.kind, words.constraint.bound, words.compat) == ("input", 6.0, "time-axis")
    triplet = of("ltd.table-2", "triplet-ltd-constraint")
    assert triplet.averaging is None
    assert triplet.model.image.batch_norm
    assert triplet.model.text.batch_norm
    assert of("ltd.table-2", "targets-fixed").objective == {"name": "cosine-distance"}
    tuned = of("ltd.table-2", "targets-fine-tuned")
    assert tuned.stages[0].scales == {"text.*": 0.1}
    etas = [of("ltd.figure-2", f"ltd-eta-{eta}").reconstruction for eta in (0.05, 0.1, 0.3)]
    assert [one.constraint.bound for one in etas] == [0.05, 0.1, 0.3]


def test_what_a_person_sets_reaches_the_rows_that_have_it() -> None:
    values = {"batches.size": 32, "reconstruction.beta": 2.0}
    assert of("ltd.table-1", "baseline", values=values).reconstruction is None
    assert of("ltd.table-1", "baseline", values=values).batches.size == 32
    dual = of("ltd.table-1", "ltd-dual", values=values).reconstruction
    assert dual.beta == 2.0
    with pytest.raises(RecipeError, match="nonsense"):
        of("ltd.table-1", "baseline", values={"nonsense": 1})


@pytest.mark.parametrize(
    ("study", "row", "values"),
    [
        ("ltd.table-2", "targets-fixed", {"model.text.word_vectors": "glove.npz"}),
        ("ltd.table-2", "targets-fixed", {"model.text.compat": "last-token"}),
        ("ltd.table-2", "targets-fixed", {"caption_augmentation.unknown": 0}),
        ("ltd.table-2", "triplet", {"averaging.refresh_batch_norm": False}),
        ("metric-learning.table-1", "vsrn-triplet", {"model.image.weights": "resnet50.safetensors"}),
        ("metric-learning.table-1", "vsepp-triplet", {"model.image.compat": "region-axis"}),
        ("convse.table-3", "vse++", {"model.projection.hidden": 512}),
        ("convse.table-3", "mvn", {"model.projection.hidden": 512}),
    ],
)
def test_what_is_of_other_rows_leaves_a_row_alone(study: str, row: str, values: dict[str, object]) -> None:
    assert of(study, row, values=values) == of(study, row)


def test_what_no_row_has_is_an_error() -> None:
    with pytest.raises(RecipeError, match=r"model\.text\.nonsense"):
        of("ltd.table-2", "targets-fixed", values={"model.text.nonsense": 1})
    # A section that is there to be added is added.
    assert of("metric-learning.table-1", "vsepp-triplet", values={"averaging.share": 0.2}).averaging


def test_targets_reach_latent_rows_only() -> None:
    latent = of("ltd.table-1", "ltd-dual", targets="folder").reconstruction
    assert (latent.targets.kind, latent.targets.model) == ("sentence", "folder")
    lsa = of("ltd.table-1", "ltd-dual", targets="lsa").reconstruction
    assert lsa.targets.kind == "lsa"
    words = of("ltd.table-1", "itd-dual", targets="folder").reconstruction
    assert words == of("ltd.table-1", "itd-dual").reconstruction
    assert of("ltd.table-2", "targets-fixed", targets="folder").model.text.targets.model == "folder"


def test_the_setting_follows_the_data() -> None:
    study = STUDIES.get("metric-learning.table-1")
    settings = {None: "quick", "Flickr30k": "paper", "coco": "paper", "flickr8k": "data"}
    assert {name: setting_for(study, name) for name in settings} == settings
    assert setting_for(study, "flickr30k", "data") == "data"
    # Table II is of COCO alone.
    assert setting_for(STUDIES.get("convse.table-2"), "flickr30k") == "data"
    with pytest.raises(UnknownNameError, match="setting"):
        setting_for(study, None, "nonsense")  # type: ignore[arg-type]


def test_rows_without_what_they_need_are_left_out() -> None:
    study = STUDIES.get("metric-learning.table-1")
    row = study.row("vsrn-triplet")
    assert "--regions" in str(why_left_out(study, row, "paper", Choices()))
    assert why_left_out(study, row, "paper", Choices(regions="r.npy")) is None
    assert "scenes" in str(why_left_out(study, row, "quick", Choices(regions="r.npy")))
    ltd = STUDIES.get("ltd.table-2")
    for name in ("baseline", "triplet"):
        assert "word vectors" in str(why_left_out(ltd, ltd.row(name), "paper", Choices()))
        assert why_left_out(ltd, ltd.row(name), "paper", Choices(values=GLOVE)) is None
        assert why_left_out(ltd, ltd.row(name), "data", Choices()) is None
    assert why_left_out(ltd, ltd.row("targets-fixed"), "paper", Choices()) is None
    recipe = recipe_of(study, row, "paper", Choices(data={"path": "f30k"}, regions="r.npy"))
    assert recipe.data.options == {"regions": "r.npy"}


def test_rows_are_called_by_name_or_by_the_papers_number() -> None:
    study = STUDIES.get("metric-learning.table-1")
    names = [row.name for row in study.resolve(["2.1", "vsepp-smoothap", "1.1"])]
    assert names == ["vsepp-triplet", "vsepp-smoothap"]
    assert len(study.resolve(None)) == 8
    with pytest.raises(UnknownNameError, match=r"1\.9"):
        study.resolve(["1.9"])


def collection(root: Path) -> Collection:
    """Two pictures in one folder and one in another; beside them two more, a text and a subfolder's."""
    names = ["val/b.jpg", "val/a.jpg", "other/c.jpg"]
    for name in (*names, "val/e.JPG", "other/d.jpg", "val/deep/f.jpg", "train/g.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(root / name)
    (root / "val" / "notes.txt").write_text("no picture")
    return Collection(
        name="shop",
        image_ids=["two", "one", "three"],
        captions=["a", "b", "c", "d"],
        caption_ids=["c1", "c2", "c3", "c4"],
        caption_image=np.array([0, 0, 1, 2]),
        splits=["test", "test", "val"],
        source=FolderSource(root, names),
        source_rows=np.arange(3),
        records=[{"x": 1}, {}, {}],
    )


def test_every_jpg_beside_the_parts_pictures(tmp_path: Path) -> None:
    whole = with_whole_folder(collection(tmp_path).split("test"))
    assert list(whole.image_ids) == ["two", "one", "val/e.JPG"]
    assert list(whole.splits) == ["test", "test", BESIDE]
    assert list(whole.captions) == ["a", "b", "c"]
    assert whole.captions_per_image.tolist() == [2, 1, 0]
    assert whole.image(2).size == (4, 4)
    assert whole.records == [{"x": 1}, {}, {}]
    assert "1 more pictures of its folder are searched" in whole.notes
    everything = with_whole_folder(collection(tmp_path))
    assert list(everything.image_ids) == ["two", "one", "three", "other/d.jpg", "val/e.JPG"]
    # The part asks, and all are searched.
    part = part_of(whole, "test", "all")
    assert part.encoded.n_images == 3
    assert list(part.asking.image_ids) == ["two", "one"]
    assert part.rows.tolist() == [0, 1]
