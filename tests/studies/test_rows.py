"""From rows to recipes: every one is a recipe, and the papers' schedules are the papers'."""

from __future__ import annotations

import pytest

from diptych.core.errors import RecipeError, UnknownNameError
from diptych.studies import STUDIES, Choices, recipe_of
from diptych.studies.rows import home_of, run_folder, setting_for, way_of, why_left_out
from diptych.studies.study import SettingName
from diptych.training.recipe import Recipe

GLOVE = {"model.text.word_vectors": "glove.npz"}

ALL = [
    (study.name, row.name, setting)
    for study in STUDIES
    for setting in study.settings
    for row in (*study.rows, *study.bases)
    if way_of(row, GLOVE) == "recipe"
    and why_left_out(study, row, setting, Choices(regions="regions.npy", values=GLOVE)) is None
]


def of(study: str, row: str, setting: SettingName = "paper", **choices: object) -> Recipe:
    found = STUDIES.get(study)
    chosen = Choices(regions="regions.npy", **choices)  # type: ignore[arg-type]
    return recipe_of(found, found.row(row), setting, chosen)


def test_every_row_is_a_recipe_in_every_setting() -> None:
    for study, row, setting in ALL:
        recipe = of(study, row, setting)
        assert recipe.name == f"{STUDIES.get(study).paper.key}.{row}"
        assert (recipe.data.scenes is not None) == (setting == "quick")
        # Everything a run keeps: the recipe survives the way through TOML.
        import tomllib

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
    assert head.model.projection is not None
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
    assert baseline.averaging is not None
    assert (baseline.averaging.share, baseline.averaging.checkpoints) == (0.1, 5)
    assert baseline.reconstruction is None
    constraint = of("ltd.table-1", "ltd-constraint").reconstruction
    assert constraint is not None
    assert constraint.constraint is not None
    assert (constraint.kind, constraint.constraint.bound) == ("latent", 0.2)
    words = of("ltd.table-1", "itd-constraint").reconstruction
    assert words is not None
    assert words.constraint is not None
    assert (words.kind, words.constraint.bound, words.compat) == ("input", 6.0, "time-axis")
    triplet = of("ltd.table-2", "triplet-ltd-constraint")
    assert triplet.averaging is None
    assert triplet.model.image.batch_norm
    assert triplet.model.text.batch_norm
    assert of("ltd.table-2", "targets-fixed").objective == {"name": "cosine-distance"}
    tuned = of("ltd.table-2", "targets-fine-tuned")
    assert tuned.stages[0].scales == {"text.*": 0.1}
    etas = [of("ltd.figure-2", f"ltd-eta-{eta}").reconstruction for eta in (0.05, 0.1, 0.3)]
    assert [one.constraint.bound for one in etas if one is not None and one.constraint] == [0.05, 0.1, 0.3]


def test_what_a_person_sets_reaches_the_rows_that_have_it() -> None:
    values = {"batches.size": 32, "reconstruction.beta": 2.0}
    assert of("ltd.table-1", "baseline", values=values).reconstruction is None
    assert of("ltd.table-1", "baseline", values=values).batches.size == 32
    dual = of("ltd.table-1", "ltd-dual", values=values).reconstruction
    assert dual is not None
    assert dual.beta == 2.0
    with pytest.raises(RecipeError, match="nonsense"):
        of("ltd.table-1", "baseline", values={"nonsense": 1})


@pytest.mark.parametrize(
    ("study", "row", "values"),
    [
        ("ltd.table-2", "targets-fixed", {"model.text.word_vectors": "glove.npz"}),
        (
            "ltd.table-2",
            "targets-fixed",
            {"model.text.compat": "last-token", "caption_augmentation.unknown": 0},
        ),
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
    assert latent is not None
    assert (latent.targets.kind, latent.targets.model) == ("sentence", "folder")
    lsa = of("ltd.table-1", "ltd-dual", targets="lsa").reconstruction
    assert lsa is not None
    assert lsa.targets.kind == "lsa"
    words = of("ltd.table-1", "itd-dual", targets="folder").reconstruction
    assert words == of("ltd.table-1", "itd-dual").reconstruction
    assert of("ltd.table-2", "targets-fixed", targets="folder").model.text.targets.model == "folder"


def test_the_setting_follows_the_data() -> None:
    study = STUDIES.get("metric-learning.table-1")
    assert setting_for(study, None) == "quick"
    assert setting_for(study, "Flickr30k") == "paper"
    assert setting_for(study, "coco") == "paper"
    assert setting_for(study, "flickr8k") == "data"
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


def test_shared_runs_live_beside_the_study(tmp_path: object) -> None:
    from pathlib import Path

    study = STUDIES.get("metric-learning.table-2")
    folder = Path("studies") / study.name
    assert home_of(study, study.rows[0], folder) == Path("studies/metric-learning.table-1")
    assert run_folder(study, study.rows[0], 2, folder) == Path(
        "studies/metric-learning.table-1/rows/vsepp-triplet/seed-2"
    )
    own = STUDIES.get("metric-learning.table-1")
    assert home_of(own, own.rows[0], Path("x")) == Path("x")


def test_a_recipe_does_not_depend_on_which_was_made_before() -> None:
    before = of("ltd.table-1", "itd-constraint")
    of("ltd.table-1", "itd-constraint", "data", values={"reconstruction.constraint.bound": 99.0})
    assert of("ltd.table-1", "itd-constraint") == before
