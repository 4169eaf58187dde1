"""Chapter 3's rows: how each is made, what a person sets for which of them, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_runs import run_study

from diptych.core.errors import DiptychError, RecipeError, UnknownNameError, UsageError
from diptych.studies import STUDIES, Choices
from diptych.studies.making import Wanted
from diptych.studies.rows import (
    base_of,
    measuring_of,
    missing_library,
    not_of_recipes,
    recipe_of,
    refuse_recipe_keys,
    section_of,
    way_of,
    why_left_out,
)
from diptych.studies.runner import plan_of
from diptych.studies.sparse_retrieval import options_of
from diptych.studies.sparse_rows import ETAS, EXPANSIONS, head_name
from diptych.studies.study import SettingName

TABLES = {number: STUDIES.get(f"d2s.table-3.{number}") for number in range(1, 7)}
FIGURE = STUDIES.get("d2s.figure-3.2")
GIVEN = {"dense": "embeddings"}


def wanted(row: str, setting: SettingName = "quick", table: int = 2, **values: object) -> Wanted:
    study = TABLES[table]
    return Wanted(study, study.row(row), 0, setting, Choices(values=values), Path("out") / study.name)


def test_every_row_says_how_it_is_made() -> None:
    ways = {row.name: way_of(row, {}) for row in (*TABLES[6].rows, *TABLES[6].bases)}
    assert ways["dense"] == "recipe"
    assert ways["d2s-1e-3-c+w"] == "head"
    assert ways["hnsw-dense"] == ways["cascade-1e-5"] == "search"
    assert way_of(TABLES[1].row("dense"), GIVEN) == "given"
    # Of other studies nothing changes: all their rows have recipes.
    made_otherwise = ("d2s", "reproducibility", "brittleness", "intent", "cti")
    studies = [study for study in STUDIES if study.paper.key not in made_otherwise]
    others = [row for study in studies for row in (*study.rows, *study.bases)]
    assert {way_of(row, GIVEN) for row in others} == {"recipe"}


def test_heads_differ_in_regularisation_and_expansion_alone() -> None:
    seen = {}
    for study in (*TABLES.values(), FIGURE):
        for row in (*study.rows, *study.bases):
            if row.sparsify is not None:
                assert seen.setdefault(row.name, row) == row  # one head under one name
    assert set(seen) == {
        *(head_name(eta, expansion) for eta in ("1e-3", "1e-5") for expansion in EXPANSIONS),
        *(head_name(eta) for eta in ETAS),
    }
    plain = options_of(wanted("d2s-1e-3-0"))
    for name in ("d2s-1e-5-c", "d2s-1e-3-1"):
        found = options_of(wanted(name))
        assert found.model_copy(update={"loss": plain.loss, "expansion": plain.expansion}) == plain
    options = options_of(wanted("d2s-1e-5-c+w"))
    assert (options.loss.eta, options.expansion.mode) == (1e-5, "c+w")


def test_the_papers_schedule() -> None:
    options = options_of(wanted("d2s-1e-3-c", "paper", dense="rows"))
    training = options.training
    assert (training.epochs, training.batch_size, training.weight_decay) == (200, 512, 0.0)
    assert (training.learning_rate, training.projection_learning_rate) == (5e-5, 1e-3)
    assert (training.warmup, options.loss.warmup, options.loss.temperature) == (0.2, 0.2, 0.001)
    assert options.loss.weight is None  # the published loss has no λ
    assert options.vocabulary.source == "distilbert-base-uncased"
    assert (options.head.shared, options.head.bias, options.head.eps) == (True, True, 1e-12)
    search = section_of(TABLES[6].row("hnsw-dense"), TABLES[6].settings["paper"], {}, "search")
    assert (search["items"], search["queries"]) == (123_287, 1024)
    hnsw = {name: search[f"options.{name}"] for name in ("m", "ef_construction", "ef_search")}
    assert hnsw == {"m": 32, "ef_construction": 40, "ef_search": 16}


def test_what_a_person_sets_reaches_the_rows_that_it_is_about() -> None:
    values = {"sparsify.training.epochs": 40, "search.items": 9, "measure.words": "glove.npz"}
    assert options_of(wanted("d2s-1e-3-c", **values)).training.epochs == 40
    study = TABLES[6]
    plain, dense = recipe_of(study, study.row("dense"), "quick"), study.row("dense")
    assert recipe_of(study, dense, "quick", Choices(values=values)) == plain
    assert recipe_of(study, dense, "quick", Choices(values={"model.width": 16})).model.width == 16
    found = section_of(TABLES[6].row("pisa-1e-3"), TABLES[6].settings["data"], values, "search")
    assert found == {"engine": "pisa", "items": 9, "queries": 1024}
    assert measuring_of(values) == {"words": "glove.npz"}


@pytest.mark.parametrize("key", ["sparsify.nonsense", "sparsify.loss.nonsense", "sparsify.training.epochs.x"])
def test_what_no_head_has_is_an_error(key: str) -> None:
    with pytest.raises(RecipeError):
        options_of(wanted("d2s-1e-3-c", **{key: 1}))


@pytest.mark.parametrize(
    ("table", "row", "key", "value"),
    [
        (2, "d2s-1e-3-c", "sparsify.loss.eta", 0.1),
        (2, "d2s-1e-3-c", "sparsify", 3),
        (2, "d2s-1e-3-c", "sparsify.training.epochs", 0),
        (2, "d2s-1e-3-c", "measure.wrods", "glove.npz"),
        (2, "d2s-1e-3-c", "measure", "glove.npz"),
        (2, "d2s-1e-3-c", "measure.words", "words.npz"),
        (6, "pisa-1e-3", "search.items", 0),
        (6, "pisa-1e-3", "search.engine", "inverted"),
    ],
)
def test_wrong_values_are_errors_before_anything_is_trained(
    table: int, row: str, key: str, value: object, tmp_path: Path
) -> None:
    study = TABLES[table]
    told: list[str] = []
    choices = Choices(setting="quick", values={key: value})
    with pytest.raises(DiptychError, match=key.split(".")[-1]):
        run_study(study, tmp_path / study.name, choices, rows=[row], tell=told.append)
    assert told == []
    assert not list(tmp_path.rglob("seed-*"))


@pytest.mark.parametrize("given", [None, "", 3])
def test_rows_that_are_given_have_a_name(given: object, tmp_path: Path) -> None:
    choices = Choices(setting="quick", values={"dense": given})
    with pytest.raises(UsageError, match="dense is "):
        run_study(TABLES[1], tmp_path / "study", choices, rows=["dense"])


def test_keys_of_other_studies_stay_errors() -> None:
    """Where no row is a head, sparsify.… and dense are keys that recipes do not have."""
    other = STUDIES.get("metric-learning.table-1")
    for key in ("sparsify.loss.eta", "dense", "measure.words", "search.items"):
        assert not not_of_recipes(other, key)
        with pytest.raises(RecipeError, match=key.partition(".")[0]):
            recipe_of(other, other.row("vsepp-triplet"), "quick", Choices(values={key: 1}))
    assert not not_of_recipes(TABLES[1], "search.items")  # it has heads, and no searches
    with pytest.raises(UnknownNameError, match="key of measure 'wrods'"):
        measuring_of({"measure.wrods": "glove.npz"})


def test_what_would_train_given_rows_is_refused() -> None:
    study = TABLES[1]
    refuse_recipe_keys(study, study.row("dense"), {**GIVEN, "sparsify.loss.eta": 1.0})
    with pytest.raises(UsageError, match=r"stages\.0\.epochs is about the training of dense"):
        refuse_recipe_keys(study, study.row("dense"), {**GIVEN, "stages.0.epochs": 3})


def test_dense_rows_are_trained_or_given() -> None:
    study = TABLES[2]
    head = study.row("d2s-1e-3-c")
    assert "--set dense=RUN, ENCODER or EMBEDDINGS" in str(why_left_out(study, head, "paper", Choices()))
    assert why_left_out(study, head, "paper", Choices(values=GIVEN)) is None
    for setting in ("data", "quick"):
        assert why_left_out(study, head, setting, Choices()) is None  # type: ignore[arg-type]
    assert base_of(study, head, "paper", Choices(values=GIVEN)) == study.row("dense")
    plan = plan_of(TABLES[6], [TABLES[6].row("inverted-1e-5")], [0], "quick")
    assert [(job.row.name, job.shown) for job in plan] == [
        ("dense", False),
        ("d2s-1e-5-c+w", False),
        ("inverted-1e-5", True),
    ]


def test_given_rows_are_the_same_with_every_seed() -> None:
    rows = list(TABLES[1].rows)
    plan = plan_of(TABLES[1], rows, [0, 1], "quick", Choices(values=GIVEN))
    assert [(job.row.name, job.seed) for job in plan if job.row.name == "dense"] == [("dense", 0)]
    trained = plan_of(TABLES[1], rows, [0, 1], "quick")
    assert [job.seed for job in trained if job.row.name == "dense"] == [0, 1]


def test_an_engine_that_is_not_installed_leaves_its_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    study = TABLES[6]
    assert missing_library("inverted") == missing_library("hnsw") == ""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    why = why_left_out(study, study.row("pisa-1e-3"), "quick", Choices())
    assert "pip install 'diptych[engines]'" in str(why)
    assert "seismic" in str(why_left_out(study, study.row("seismic-1e-5"), "quick", Choices()))
    assert why_left_out(study, study.row("inverted-1e-3"), "quick", Choices()) is None
