"""Thesis chapter 3: rows, recipes, checks, and what is searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_rel
from study_runs import HEADS, SMALL, run_study

from diptych.core.errors import DiptychError, RecipeError, UsageError
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.sparse.measures import flops
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.studies import STUDIES, Choices, Results, compare, searched
from diptych.studies.claims import Check, Finding
from diptych.studies.d2s_search import falls_with, ratio, times
from diptych.studies.making import Wanted
from diptych.studies.page import study_page
from diptych.studies.results import keep
from diptych.studies.rows import (
    base_of,
    measuring_of,
    missing_library,
    recipe_of,
    section_of,
    way_of,
    why_left_out,
)
from diptych.studies.runner import plan_of
from diptych.studies.searched import SearchOptions, best_ids, options_of_search, recall_of, with_copies
from diptych.studies.sparse_retrieval import options_of
from diptych.studies.sparse_rows import (
    every_step,
    exceeds_by,
    narrowing,
    paired_tests,
    positive,
    significantly,
    tends,
    within,
)
from diptych.studies.study import SettingName
from diptych.studies.verdict import Evidence, Figure

TABLES = {number: STUDIES.get(f"d2s.table-3.{number}") for number in range(1, 7)}
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


@pytest.mark.parametrize(
    ("table", "row", "key", "value"),
    [
        (2, "d2s-1e-3-c", "sparsify.loss.eta", 0.1),
        (2, "d2s-1e-3-c", "sparsify.nonsense", 1),
        (2, "d2s-1e-3-c", "sparsify.loss.nonsense", 1),
        (2, "d2s-1e-3-c", "sparsify", 3),
        (2, "d2s-1e-3-c", "sparsify.training.epochs", 0),
        (2, "d2s-1e-3-c", "measure.wrods", "glove.npz"),
        (2, "d2s-1e-3-c", "measure", "glove.npz"),
        (2, "d2s-1e-3-c", "measure.words", "words.npz"),
        (1, "dense", "dense", None),
        (1, "dense", "dense", ""),
        (1, "dense", "dense", 3),
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


def test_dense_rows_are_trained_or_given() -> None:
    study = TABLES[2]
    head = study.row("d2s-1e-3-c")
    assert "--set dense=RUN, ENCODER or EMBEDDINGS" in str(why_left_out(study, head, "paper", Choices()))
    assert why_left_out(study, head, "paper", Choices(values=GIVEN)) is None
    for setting in ("data", "quick"):
        assert why_left_out(study, head, setting, Choices()) is None  # type: ignore[arg-type]
    assert base_of(study, head, "paper", Choices(values=GIVEN)) == study.row("dense")
    plan = plan_of(TABLES[6], [TABLES[6].row("inverted-1e-5")], [0], "quick")
    jobs = [("dense", False), ("d2s-1e-5-c+w", False), ("inverted-1e-5", True)]
    assert [(job.row.name, job.shown) for job in plan] == jobs


def test_an_engine_that_is_not_installed_leaves_its_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    study = TABLES[6]
    assert missing_library("inverted") == missing_library("hnsw") == ""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    why = why_left_out(study, study.row("pisa-1e-3"), "quick", Choices())
    assert "pip install 'diptych[engines]'" in str(why)
    assert "seismic" in str(why_left_out(study, study.row("seismic-1e-5"), "quick", Choices()))
    assert why_left_out(study, study.row("inverted-1e-3"), "quick", Choices()) is None


def held(findings: list[Finding]) -> list[bool | None]:
    return [finding.holds for finding in findings]


def kept(folder: Path, values: np.ndarray, column: str = "Exact@20") -> Path:
    keep(folder, {column: values}, np.arange(len(values)) // 5)
    return folder


def test_values_per_query_are_paired(tmp_path: Path) -> None:
    """The mean decides alone where nothing is kept; with values per query, so does a paired t-test."""
    noise = np.random.default_rng(0).normal(size=100)
    columns = ("Exact@20",)
    sure = kept(tmp_path / "sure", 10 + noise)
    unsure = kept(tmp_path / "unsure", 10 + np.roll(noise, 7) + 0.01)
    worse = kept(tmp_path / "worse", 9 + noise + np.linspace(-0.1, 0.1, 100))
    rows = {"sure": 10.0, "unsure": 10.01, "worse": 9.0}
    of = {row: {"Exact@20": Figure(mean)} for row, mean in rows.items()}
    evidence = Evidence(of, {}, {"sure": [sure], "unsure": [unsure], "worse": [worse]})
    check = significantly([("sure", "worse")], columns, 0.01)
    above, p = check(evidence)
    assert (above.holds, p.holds) == (True, True)
    assert "p < 0.01 of 1 tests" in p.what
    _, p = significantly([("unsure", "sure")], columns, 0.01)(evidence)
    assert p.holds is False
    # A difference the wrong way is not significant however sure it is.
    assert held(significantly([("worse", "sure")], columns, 0.01)(evidence)) == [False, False]
    assert held(check(Evidence(of))) == [True]  # as of printed numbers


TABLE = STUDIES.get("d2s.table-3.6")
ROWS = ["hnsw-dense", "hnsw-dense-equal", "pisa-1e-3", "inverted-1e-3", "cascade-1e-3", "cascade-1e-3-1000"]


def test_copies_are_pictures_with_noise_of_their_length() -> None:
    rows = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32) * 3
    made = np.concatenate(list(with_copies(rows, 12, 0.5)))
    assert made.shape == (12, 400)
    assert np.array_equal(made[:5], rows)
    copies = made[5:10]
    assert np.allclose(np.linalg.norm(copies, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
    cosines = np.sum(copies * rows, axis=1) / np.sum(rows * rows, axis=1)
    assert np.allclose(cosines, 1 / np.sqrt(1 + 0.5**2), atol=0.05)
    assert not np.allclose(made[10], made[5])  # a second copy has noise of its own
    assert np.array_equal(np.concatenate(list(with_copies(rows, 12, 0.5))), made)
    assert np.allclose(np.concatenate(list(with_copies(rows, 12, 0.0)))[5:10], rows, rtol=1e-6)


def test_recall_is_of_the_best_there_are() -> None:
    best = np.array([["a", "b", "c"], ["d", None, None], [None, None, None]], dtype=object)
    found = [["a", "x"], ["d", "y"], ["z"]]
    assert recall_of(found, best, 2) == pytest.approx((0.5 + 1.0) / 2)  # the third has nothing to find
    assert recall_of(found[:1], best, 1) == 1.0  # as many as there was time for
    assert np.isnan(recall_of(found[:1], best[2:], 2))


def test_the_best_are_those_of_every_pair() -> None:
    draw = np.random.default_rng(0)
    dense = draw.normal(size=(30, 8)).astype(np.float32)
    ids = [f"i{place}" for place in range(30)]
    queries = draw.normal(size=(4, 8)).astype(np.float32)
    items = Embeddings(ids, dense, "e", "d", "image", {})
    wanted = np.argsort(-(queries @ dense.T), axis=1)[:, :3]
    assert best_ids(items, queries, 3).tolist() == [[ids[place] for place in row] for row in wanted]
    bags = np.where(draw.random((30, 8)) < 0.3, np.abs(dense), 0).astype(np.float32)
    asked = np.zeros((2, 8), dtype=np.float32)
    asked[0, 2] = 1.0
    sparse = SparseEmbeddings(ids, csr_array(bags), [str(term) for term in range(8)], "e", "d", "image", {})
    first, nothing = best_ids(sparse, csr_array(asked), 30).tolist()
    found = [name for name in first if name is not None]
    assert found == [ids[place] for place in np.argsort(-bags[:, 2], kind="stable") if bags[place, 2] > 0]
    assert nothing == [None] * 30


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_LEAST", 0.0)
    monkeypatch.setattr(searched, "_SECONDS", 5.0)
    monkeypatch.setattr(searched, "_ONE_BY_ONE", 2)


@pytest.fixture
def results(scenes_folder: Path, tmp_path: Path, hurried: None) -> Results:
    values = {**SMALL, **HEADS, "search.items": 150, "search.queries": 20}
    choices = Choices(setting="quick", data={"path": str(scenes_folder)}, values=values)
    return run_study(TABLE, tmp_path / TABLE.name, choices, rows=ROWS)


def test_engines_are_searched_with_their_recall(results: Results, tmp_path: Path) -> None:
    measured = {entry.row: entry.measurements[0] for entry in results.entries}
    assert list(measured) == [row.name for row in TABLE.rows if row.name in ROWS]
    for name, one in measured.items():
        for what in ("throughput", "latency", "recall"):
            assert {f"{what} @{k}" for k in (10, 100, 1000)} <= set(one.values)
        assert (one.on.split, one.on.images, one.on.captions) == ("all", 150, 20)
        assert one.values["latency @10|published"] == pytest.approx(1000 / one.values["throughput @10"])
        assert "150 items: 80 pictures of all splits, then copies with noise of 0.5" in one.protocol
        assert ("FLOPs" in one.values) is (name in ("pisa-1e-3", "inverted-1e-3"))
    assert [measured["inverted-1e-3"].values[f"recall @{k}"] for k in (10, 100, 1000)] == [100, 100, 100]
    assert measured["hnsw-dense-equal"].values["recall @10"] >= 97
    assert "ef_search 16 @10" in measured["hnsw-dense-equal"].protocol
    # whole-number impacts of a barely trained head
    assert 0 < measured["pisa-1e-3"].values["recall @10"] <= 100
    # As many candidates as are asked for find fewer of the best than a thousand.
    few, many = (measured[row].values["recall @10"] for row in ("cascade-1e-3", "cascade-1e-3-1000"))
    assert few <= many
    folder = tmp_path / "d2s.table-3.1" / "rows"
    items = SparseEmbeddings.open(folder / "d2s-1e-3-c+w" / "seed-0" / "items" / "150-0.5" / "rows")
    assert len(items) == len(set(items.ids)) == 150
    sparse = SparsifiedCollection.open(folder / "d2s-1e-3-c+w" / "seed-0" / "sparse" / "scenes-test")
    places = np.linspace(0, 79, 20).round().astype(int)
    expected = flops(sparse.texts.rows[places], items.rows)
    assert measured["inverted-1e-3"].values["FLOPs"] == pytest.approx(expected)

    comparison = compare(TABLE, results)
    page = study_page(comparison).html()
    assert "&lt;1" in page  # printed as a bound
    assert "throughput @10, mean and standard deviation" in page
    statuses = {claim.name: judgement.status for claim, judgement, _ in comparison.claims}
    assert statuses["HNSW of terms"] == "not run"
    assert statuses["ours: PISA"] in ("holds", "fails")


def test_an_option_that_no_search_has_is_an_error(scenes_folder: Path, tmp_path: Path) -> None:
    def options(**values: object) -> SearchOptions:
        chosen = Choices(setting="quick", data={"path": str(scenes_folder)}, values=values)
        return options_of_search(Wanted(TABLE, TABLE.row("hnsw-dense"), 0, "quick", chosen, tmp_path))

    assert options(**{"search.options.threads": 1}).options == {
        "m": 32, "ef_construction": 40, "ef_search": 16, "threads": 1,
    }  # fmt: skip
    # All rows would be the same, whatever they are called.
    for key in ("search.engine", "search.options.ef_search"):
        with pytest.raises(UsageError, match="is what sets hnsw-dense apart"):
            options(**{key: 64})
    for key in ("search.nonsense", "search.nonsense.more"):
        with pytest.raises(RecipeError, match="nonsense"):
            options(**{key: 1})
    with pytest.raises(RecipeError, match="items"):
        options(**{"search.items": 0})


GAP = ("t2i R@1", "t2i R@5", "t2i R@10")
BLIP = {"dense": (57.3, 81.8, 90.0), "d2s": (51.8, 79.3, 87.0)}
RATES = ("throughput @10", "throughput @1000")
SPEED = {"fast": (300.0, 90.0), "slow": (10.0, 9.0)}
MIXED = {"a": (50.0,), "b": (-1.0,)}
RISING = every_step(("a", "b", "c"), "x", rising=True)
TREND = tends(("a", "b", "c", "d"), ("x",))


def each(*values: float, rows: str = "abcd") -> dict[str, tuple[float]]:
    return {row: (value,) for row, value in zip(rows, values, strict=False)}


@pytest.mark.parametrize(
    ("check", "rows", "columns", "expected"),
    [
        (RISING, each(1.0, 2.0, 3.0), ("x",), [True, True]),
        (RISING, each(1.0, 3.0, 2.0), ("x",), [True, False]),
        (RISING, each(1.0, 2.0, rows="ac"), ("x",), [True]),  # one that was not run is passed over
        (RISING, each(1.0), ("x",), [None]),
        (every_step(("a", "b"), "x", rising=False), each(2.0, 1.0), ("x",), [True]),
        (TREND, each(1.0, 2.0, 3.0, 4.0), ("x",), [True]),  # two of three steps and the whole way
        (TREND, each(1.0, 2.0, 4.0, 3.0), ("x",), [True]),  # two of three
        (TREND, each(1.0, 4.0, 3.0, 2.0), ("x",), [False]),  # one of three
        (TREND, each(4.0, 1.0, 2.0, 3.0), ("x",), [False]),  # two of three, and lower in the end
        (narrowing("d2s", "dense", GAP), BLIP, GAP, [True, False]),  # gaps of 5.5, 2.5, 3.0
        (narrowing("d2s", "other", GAP), BLIP, GAP, [None]),
        (positive(("a", "b"), ("x",)), MIXED, ("x",), [True, False]),
        (positive(("c",), ("x",)), MIXED, ("x",), [None]),
        (within(("c",), "x", 60, 80), {"overlap": (70.0,)}, ("x",), [True]),  # printed on average
        (within(("a",), "x", 60, 80), MIXED, ("x",), [False]),
        (within(("c",), "x", 60, 80), MIXED, ("x",), [None]),
        (exceeds_by("a", "b", "x", 0.024, 0.001), {"a": (54.5,), "b": (53.2,)}, ("x",), [True]),
        (exceeds_by("a", "b", "x", 0.028, 0.0025), {"a": (54.5,), "b": (53.2,)}, ("x",), [False]),
        (times("fast", "slow", 20.0, *RATES), SPEED, RATES, [True, False]),
        (times("fast", "none", 1.0, RATES[0]), SPEED, RATES, [None]),
        (ratio("fast", "slow", RATES, 20.0, 40.0), SPEED, RATES, [True, False]),
        (falls_with("fast", "slow", RATES), SPEED, RATES, [True]),
        (falls_with("slow", "fast", RATES), SPEED, RATES, [False]),
    ],
)
def test_checks_by_hand(
    check: Check, rows: dict[str, tuple[float, ...]], columns: tuple[str, ...], expected: list[bool | None]
) -> None:
    of = {row: dict(zip(columns, map(Figure, values), strict=True)) for row, values in rows.items()}
    assert held(list(check(Evidence(of)))) == expected


def test_p_values_are_corrected_for_as_many_tests_as_there_are(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    rows = {"a": draw.normal(size=60), "b": draw.normal(size=60) - 0.45}
    folders = {name: [kept(tmp_path / name, row)] for name, row in rows.items()}
    of = {name: {"Exact@20": Figure(float(np.mean(row)))} for name, row in rows.items()}
    single = paired_tests({"x": (rows["a"], rows["b"])}, np.arange(60) // 5)["x"][1]
    assert single is not None
    for pairs, holds in (([("a", "b")], [True]), ([("a", "b"), ("b", "a")], [False, False])):
        found = significantly(pairs, ("Exact@20",), 1.5 * single)(Evidence(of, {}, folders))
        assert [finding.holds for finding in found if "tests" in finding.what] == holds


def test_as_published_every_caption_by_itself():
    random = np.random.default_rng(0)
    first = random.random(50)
    second = first - random.normal(0.02, 0.1, 50)
    other = random.random(50)
    found = paired_tests({"Exact@20": (first, second), "Semantic@20": (first, other)}, None)
    for name, values in (("Exact@20", second), ("Semantic@20", other)):
        wanted = ttest_rel(first, values).pvalue
        assert found[name][1] == pytest.approx(wanted)
        assert found[name][2] == pytest.approx(min(1, 2 * wanted))
    assert found["Exact@20"][0] == pytest.approx(first.mean() - second.mean())


def test_captions_of_one_picture_are_one_observation():
    random = np.random.default_rng(1)
    of_picture = random.normal(0.3, 1, 20)
    difference = np.repeat(of_picture, 5)  # five captions that say the same five times
    picture = np.repeat(np.arange(20), 5)
    found = paired_tests({"Exact@20": (difference, np.zeros(100))}, picture)["Exact@20"]
    assert found[1] == pytest.approx(ttest_rel(of_picture, np.zeros(20)).pvalue)
    alone = paired_tests({"Exact@20": (difference, np.zeros(100))}, None)["Exact@20"]
    assert alone[1] < found[1]
