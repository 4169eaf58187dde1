"""Thesis chapter 3: dense rows trained or given, heads on them, searches, claims; what is used again and refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_rel
from study_runs import HEADS, SMALL, run_study

from diptych.core.errors import DiptychError, Interrupted, MismatchError, RecipeError, UsageError
from diptych.data import read_collection
from diptych.data.scenes import make_scenes
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.sparse.measures import flops
from diptych.sparse.options import SparsifyOptions, sparsify_options
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.studies import STUDIES, Choices, Claim, Evidence, Figure, Results, collect, compare, judge, searched
from diptych.studies.evidence import keep
from diptych.studies.page import study_page
from diptych.studies.plan import Plan
from diptych.studies.runner import plan_of
from diptych.studies.searched import Items, as_dense, best_ids, recall_of, search_options, with_copies

TABLES = {number: STUDIES.get(f"d2s.table-3.{number}") for number in range(1, 7)}
BASE, SEARCHES, FIGURE = TABLES[1], TABLES[6], STUDIES.get("d2s.figure-3.2")
HEAD = "d2s-1e-3-c+w"
ROWS = ["dense", HEAD]


def planned(table: int, setting: Any = "quick", **values: Any) -> Plan:
    return plan_of(TABLES[table], Path(), Choices(setting=setting, values=values), Path())


def head(setting: Any, row: str = HEAD, **values: Any) -> SparsifyOptions:
    plan = planned(2, setting, **values)
    return sparsify_options(plan.options_of(plan.study.row(row)))


# How rows are made ---------------------------------------------------------------------------------------


def test_the_papers_schedule_and_the_codes() -> None:
    """What text and code agree in, and where the published code is another one."""
    text, code = head("paper"), head("published")
    training = text.training
    assert (training.epochs, training.batch_size, training.weight_decay) == (200, 512, 0.0)
    assert (training.learning_rate, training.projection_learning_rate) == (5e-5, 1e-3)
    assert (training.warmup, text.loss.warmup, text.loss.temperature) == (0.2, 0.2, 0.001)
    assert (text.loss.eta, text.loss.weight, text.head.eps) == (1e-3, None, 1e-12)  # λ has no value
    assert text.vocabulary.source == "distilbert-base-uncased"
    assert (text.head.bias, text.expansion.schedule) == (False, "thesis")
    assert (code.head.bias, code.expansion.schedule) == (True, "published")
    same = {"head": text.head, "expansion": text.expansion}
    assert code.model_copy(update=same) == text
    plan = planned(6, "published")
    queries = {row.name: plan.options_of(row)["queries"] for row in SEARCHES.rows}
    assert {name for name, count in queries.items() if count == 2000} == {"hnsw-dense"}
    for row in ("hnsw-dense", "hnsw-1e-3"):
        found = search_options(plan, SEARCHES.row(row))
        assert (found.items, found.options) == (123_287, {"m": 32, "ef_construction": 40, "ef_search": 16})


def test_what_is_set_reaches_the_rows_that_it_is_about() -> None:
    values = {"sparsify.training.epochs": 40, "search.items": 9, "measure.words": "glove.npz"}
    assert head("quick", **values).training.epochs == 40
    dense = SEARCHES.row("dense")
    assert planned(6, **values).recipe_of(dense) == planned(6).recipe_of(dense)
    assert planned(6, **{"model.width": 16}).recipe_of(dense).model.width == 16
    pisa = planned(6, "data", **values).options_of(SEARCHES.row("pisa-1e-3"))
    assert pisa == {"engine": "pisa", "items": 9, "queries": 1024}


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
        (1, "dense", "dense", ""),
        (1, "dense", "dense", 3),
        (6, "inverted-1e-3", "search.items", 0),
        (6, "inverted-1e-3", "search.engine", "exact"),
        (6, "hnsw-dense", "search.options.ef_search", 64),
        (6, "hnsw-dense", "search.nonsense", 1),
        (6, "hnsw-dense", "search.nonsense.more", 1),
    ],
)
def test_wrong_values_are_errors_before_anything_is_trained(
    table: int, row: str, key: str, value: object, tmp_path: Path
) -> None:
    told: list[str] = []
    choices = Choices(setting="quick", values={key: value})
    with pytest.raises(DiptychError, match="nonsense" if "nonsense" in key else key.split(".")[-1]):
        run_study(TABLES[table], tmp_path / "out", choices, rows=[row], tell=told.append)
    assert told == []
    assert not list(tmp_path.rglob("seed-*"))


def test_dense_rows_are_trained_or_given() -> None:
    row = BASE.row(HEAD)
    assert "--set dense=RUN, ENCODER or EMBEDDINGS" in str(planned(1, "paper").why_not(row))
    for plan in (planned(1, "paper", dense="rows"), planned(1, "data"), planned(1)):
        assert plan.why_not(row) is None
    units = planned(6).units([SEARCHES.row("inverted-1e-5")], [0], [])
    bases = [("dense", False), ("d2s-1e-5-c+w", False)]
    assert [(unit.row.name, unit.shown) for unit in units] == [*bases, ("inverted-1e-5", True)]


def test_an_engine_that_is_not_installed_leaves_its_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    plan = planned(6)
    why = {row.name: plan.why_not(row) for row in SEARCHES.rows}
    left_out = {name for name, said in why.items() if said}
    assert left_out == {name for name in why if name.startswith(("pisa", "seismic"))}
    assert all("pip install 'diptych[engines]'" in str(why[name]) for name in left_out)


# Claims --------------------------------------------------------------------------------------------------


def of(numbers: dict[str, dict[str, float]], **more: Any) -> Evidence:
    figures = {row: {name: Figure(one) for name, one in values.items()} for row, values in numbers.items()}
    return Evidence(figures, exact=True, **more)


def by_eta(column: str, *values: float) -> dict[str, dict[str, float]]:
    rows = [f"d2s-1e-{eta}-c+w" for eta in (2, 3, 4, 5)]
    return {row: {column: value} for row, value in zip(rows, values, strict=False)}


ρ = ("ρ-R@1", "ρ-R@5", "ρ-MRR@10")
BLIP = {"dense": {"t2i R@1": 57.3, "t2i R@5": 81.8, "t2i R@10": 90.0}}
NEARER = {"t2i R@1": 51.8, "t2i R@5": 79.3, "t2i R@10": 89.0}  # gaps of 5.5, 2.5, 1.0
RATES = ("throughput @10", "throughput @100", "throughput @1000")


def rates(cascade: tuple[float, ...], pisa: float = 10.0) -> dict[str, dict[str, float]]:
    each = {"cascade": cascade, "pisa": (pisa,) * 3}
    return {f"{row}-{eta}": dict(zip(RATES, each[row], strict=True)) for row in each for eta in ("1e-3", "1e-5")}


@pytest.mark.parametrize(
    ("study", "claim", "numbers", "status"),
    [
        ("table-3.5", "η", (1, 2, 3, 4), "holds"),
        ("table-3.5", "η", (1, 2, 4, 3), "holds"),  # two of three steps and the whole way
        ("table-3.5", "η", (1, 4, 3, 2), "fails"),  # one of three
        ("table-3.5", "η", (4, 1, 2, 3), "fails"),  # two of three, and lower in the end
        ("table-3.5", "η", (1, 2, 3), "not tested"),
        ("table-3.5", "positive", (1, 2, 3, 4), "holds"),
        ("table-3.5", "positive", (1, 2, -3, 4), "fails"),
        ("figure-3.2", "overlap", {"overlap": {"overlap@10": 70}}, "holds"),  # printed on average
        ("figure-3.2", "overlap", by_eta("overlap@10", 50, 60, 70, 80), "holds"),
        ("figure-3.2", "overlap", by_eta("overlap@10", 90, 60, 90, 90), "fails"),
        ("figure-3.2", "overlap", by_eta("overlap@10", 70), "not tested"),
        ("figure-3.2", "gap", BLIP | dict.fromkeys(by_eta("", 1, 2, 3, 4), NEARER), "holds"),
        ("figure-3.2", "gap", BLIP | dict.fromkeys(by_eta("", 1, 2, 3, 4), NEARER | {"t2i R@10": 87.0}), "fails"),
        ("table-3.6", "few pictures", rates((90.0, 60.0, 20.0)), "holds"),
        ("table-3.6", "few pictures", rates((90.0, 20.0, 60.0)), "fails"),
        ("table-3.6", "cascade", rates((90.0, 20.0, 9.0)), "fails"),
    ],
)
def test_claims_by_hand(study: str, claim: str, numbers: Any, status: str) -> None:
    if isinstance(numbers, tuple):
        numbers = {row: dict.fromkeys(ρ, value[""]) for row, value in by_eta("", *numbers).items()}
    one = next(one for one in STUDIES.get(f"d2s.{study}").claims if one.name == claim)
    assert judge(one, of(numbers)).status == status


def test_tests_are_paired_by_picture_and_corrected_for_their_number(tmp_path: Path) -> None:
    """Captions of one picture are one observation; p is that of SciPy, a claim of two tests needs half of it."""
    draw = np.random.default_rng(1)
    values = {"a": draw.normal(size=60), "b": draw.normal(size=60) - 0.45}
    for name, each in values.items():
        keep(tmp_path / name, {"x": each}, np.arange(60) // 5)
    means = {name: {"x": float(each.mean())} for name, each in values.items()}
    evidence = replace(of(means, kept={name: [tmp_path / name] for name in values}), exact=False)
    p = ttest_rel(*(each.reshape(12, 5).mean(axis=1) for each in values.values())).pvalue

    def status(level: float, *checks: str) -> str:
        return judge(Claim("", "", checks=checks, columns=("x",), p=level), evidence).status

    assert status(1.01 * p, "[a] > [b]") == "holds"
    assert status(0.99 * p, "[a] > [b]") == "undecided"
    assert status(1.99 * p, "[a] > [b]", "0 < [a] - [b]") != status(2.01 * p, "[a] > [b]", "[b] < [a]") == "holds"
    assert status(1.01 * p, "[b] > [a]") == "fails"  # the wrong way, however sure


# What is searched ----------------------------------------------------------------------------------------


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
    assert recall_of([["a", "x"], ["d", "y"], ["z"]], best, 2) == pytest.approx((0.5 + 1.0) / 2)
    assert recall_of([["a", "x"]], best, 1) == 1.0  # as many as there was time for
    assert np.isnan(recall_of([["a", "x"]], best[2:], 2))


def test_the_best_are_those_of_every_pair_and_terms_as_dense_rows_score_alike() -> None:
    draw = np.random.default_rng(0)
    dense = draw.normal(size=(30, 8)).astype(np.float32)
    ids = [f"i{place}" for place in range(30)]
    queries = draw.normal(size=(4, 8)).astype(np.float32)
    wanted = np.argsort(-(queries @ dense.T), axis=1)[:, :3]
    found = best_ids(Embeddings(ids, dense, "e", "d", "image", {}), queries, 3).tolist()
    assert found == [[ids[place] for place in row] for row in wanted]
    bags = np.where(draw.random((30, 8)) < 0.3, np.abs(dense), 0).astype(np.float32)
    bags[:, 5] = 0  # a term that no picture has
    asked = csr_array(np.eye(8, dtype=np.float32)[[2, 5]])
    items = SparseEmbeddings(ids, csr_array(bags), list("abcdefgh"), "e", "d", "image", {"items": "30 items"})
    first, nothing = best_ids(items, asked, 30).tolist()
    order = np.argsort(-bags[:, 2], kind="stable")
    assert [name for name in first if name is not None] == [ids[one] for one in order if bags[one, 2] > 0]
    assert nothing == [None] * 30
    for gigabytes, count in ((1.0, 30), (10 * 7 * 4 / 2**30, 10)):
        few, rows = as_dense(Items(items, asked, asked), gigabytes)
        assert rows.items.rows.shape == (count, 7)
        assert list(few.items.ids) == list(rows.items.ids) == ids[:count]
        assert np.allclose(rows.queries @ rows.items.rows.T, asked @ bags[:count].T)
        assert few.items.about["items"].startswith("30 items" if count == 30 else "the first 10 of 30 items")
