"""Thesis chapter 3: dense rows trained or given, heads on them, searches, claims; what is used again and refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_rel
from study_runs import HEADS, SMALL, run_study

from diptych.core.errors import DiptychError, MismatchError, UsageError
from diptych.data import read_collection
from diptych.data.scenes import make_scenes
from diptych.encoders.embeddings import SparseEmbeddings
from diptych.sparse.measures import flops
from diptych.sparse.options import sparsify_options
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.studies import STUDIES, Choices, Claim, Evidence, Figure, collect, compare, judge
from diptych.studies.evidence import KEPT, Kept
from diptych.studies.page import study_page
from diptych.studies.runner import plan_of
from diptych.studies.searched import as_dense, best_of, recall_of, search_options, with_copies

TABLES = {number: STUDIES.get(f"d2s.table-3.{number}") for number in range(1, 7)}
BASE, SEARCHES, FIGURE = TABLES[1], TABLES[6], STUDIES.get("d2s.figure-3.2")
ROWS = ["dense", HEAD := "d2s-1e-3-c+w"]


def planned(table, setting="quick", **values):
    return plan_of(TABLES[table], Path(), Choices(setting=setting, values=values), Path())


def head(setting, **values):
    return sparsify_options(planned(2, setting, **values).options_of(TABLES[2].row(HEAD)))


def test_the_papers_schedule_and_the_codes():
    text, code = head("paper"), head("published")
    one, loss = text.training, text.loss
    assert (one.epochs, one.batch_size, one.warmup, one.weight_decay) == (200, 512, 0.2, 0.0)
    assert (one.learning_rate, one.projection_learning_rate) == (5e-5, 1e-3)
    assert (loss.eta, loss.weight, loss.temperature) == (1e-3, None, 0.001)  # λ has no value
    assert text.vocabulary.source == "distilbert-base-uncased"
    assert (text.head.bias, text.expansion.schedule) == (False, "thesis")
    assert (code.head.bias, code.expansion.schedule) == (True, "published")
    plan = planned(6, "published")
    queries = {row.name: plan.options_of(row)["queries"] for row in SEARCHES.rows}
    assert {name for name, count in queries.items() if count == 2000} == {"hnsw-dense"}
    found = [search_options(plan, SEARCHES.row(row)) for row in ("hnsw-dense", "hnsw-1e-3")]
    assert {one.items for one in found} == {123_287}
    assert [one.options for one in found] == [{"m": 32, "ef_construction": 40, "ef_search": 16}] * 2


def test_what_is_set_reaches_the_rows_that_it_is_about():
    values = {"sparsify.training.epochs": 40, "search.items": 9, "measure.words": "glove.npz"}
    assert head("quick", **values).training.epochs == 40
    dense = SEARCHES.row("dense")
    plain, set_, wide = (planned(6, **given).recipe_of(dense) for given in ({}, values, {"model.width": 16}))
    assert plain == set_ != wide
    assert planned(6, "data", **values).options_of(SEARCHES.row("pisa-1e-3"))["items"] == 9


OF_A_HEAD = {"loss.eta": 0.1, "nonsense": 1, "loss.nonsense": 1, "training.epochs": 0}
OF_A_SEARCH = {"items": 0, "engine": "exact", "options.ef_search": 64, "nonsense": 1, "nonsense.more": 1}
WRONG = [
    *((2, "d2s-1e-3-c", f"sparsify.{key}", value) for key, value in OF_A_HEAD.items()),
    *((6, "hnsw-dense", f"search.{key}", value) for key, value in OF_A_SEARCH.items()),
    *((2, "d2s-1e-3-c", key, "w.npz") for key in ("sparsify", "measure", "measure.wrods", "measure.words")),
    *((1, "dense", "dense", value) for value in ("", 3)),
]


def test_wrong_values_are_errors_before_anything_is_trained(tmp_path):
    for table, row, key, value in WRONG:
        told = []
        choices = Choices(setting="quick", values={key: value})
        with pytest.raises(DiptychError, match="nonsense" if "nonsense" in key else key.split(".")[-1]):
            run_study(TABLES[table], tmp_path / "out", choices, rows=[row], tell=told.append)
        assert (told, list(tmp_path.rglob("seed-*"))) == ([], [])


def test_what_can_be_run_and_what_is_made_for_it(monkeypatch):
    row = BASE.row(HEAD)
    assert "--set dense=RUN, ENCODER or EMBEDDINGS" in str(planned(1, "paper").why_not(row))
    for plan in (planned(1, "paper", dense="rows"), planned(1, "data"), planned(1)):
        assert plan.why_not(row) is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    why = {row.name: planned(6).why_not(row) or "" for row in SEARCHES.rows}
    left_out = {name for name, said in why.items() if "pip install 'diptych[engines]'" in said}
    assert left_out == {name for name, said in why.items() if said}
    assert left_out == {name for name in why if name.startswith(("pisa", "seismic"))}
    units = planned(6).units([SEARCHES.row("inverted-1e-5")], [0], [])
    bases = [("dense", False), ("d2s-1e-5-c+w", False)]
    assert [(unit.row.name, unit.shown) for unit in units] == [*bases, ("inverted-1e-5", True)]


def test_claims_by_hand():
    rows = [f"d2s-1e-{eta}-c+w" for eta in (2, 3, 4, 5)]
    for study, claim, numbers, status in (
        ("table-3.5", "η", (1, 2, 3, 4), "holds"),
        ("table-3.5", "η", (1, 2, 4, 3), "holds"),  # two of three steps and the whole way
        ("table-3.5", "η", (1, 4, 3, 2), "fails"),  # one of three
        ("table-3.5", "η", (4, 1, 2, 3), "fails"),  # two of three, and lower in the end
        ("table-3.5", "positive", (1, 2, -3, 4), "fails"),
        ("figure-3.2", "overlap", (50, 60, 70, 80), "holds"),
        ("figure-3.2", "overlap", (90, 60, 90, 90), "fails"),
    ):
        study = STUDIES.get(f"d2s.{study}")
        of_row = ({column.name: Figure(one) for column in study.columns} for one in numbers)
        one = next(one for one in study.claims if one.name == claim)
        assert judge(one, Evidence(dict(zip(rows, of_row, strict=False)), exact=True)).status == status


def test_tests_are_paired_by_picture_and_corrected_for_their_number(tmp_path):
    """Captions of one picture are one observation, p is SciPy's, and of two tests half of it is needed."""
    draw = np.random.default_rng(1)
    values = {"a": draw.normal(size=60), "b": draw.normal(size=60) - 0.45}
    for name, each in values.items():
        Kept({"x": each}, np.arange(60) // 5).save(tmp_path / name / KEPT)
    means = {name: {"x": Figure(float(each.mean()))} for name, each in values.items()}
    evidence = Evidence(means, kept={name: [tmp_path / name] for name in values})
    p = ttest_rel(*(each.reshape(12, 5).mean(axis=1) for each in values.values())).pvalue

    def status(level, *checks):
        return judge(Claim("", "", checks=checks, columns=("x",), p=level), evidence).status

    twice = ("[a] > [b]", "[b] < [a]")  # two tests
    assert [status(factor * p, "[a] > [b]") for factor in (0.99, 1.01)] == ["undecided", "holds"]
    assert [status(factor * p, *twice) for factor in (1.99, 2.01)] == ["undecided", "holds"]
    assert status(1.01 * p, "[b] > [a]") == "fails"  # the wrong way, however sure


def test_copies_are_pictures_with_noise_of_their_length():
    rows = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32) * 3
    made, again = (with_copies(rows, 12, 0.5) for _ in range(2))
    lengths = np.linalg.norm(rows, axis=1)
    cosines = np.sum(made[5:10] * rows, axis=1) / lengths**2
    assert np.array_equal(made[:5], rows)
    assert np.array_equal(made, again)
    assert np.allclose(np.linalg.norm(made[5:10], axis=1), lengths, rtol=1e-5)
    assert np.allclose(cosines, 1 / np.sqrt(1 + 0.5**2), atol=0.05)
    assert not np.allclose(made[10], made[5])  # a second copy has noise of its own


def test_recall_is_of_the_best_of_all_and_terms_as_dense_rows_score_alike():
    best = [["a", "b", "c"], ["d"], []]
    assert recall_of([["a", "x"], ["d", "y"], ["z"]], best, 2) == pytest.approx((0.5 + 1.0) / 2)
    assert np.isnan(recall_of([["a", "x"]], best[2:], 2))
    draw, ids = np.random.default_rng(0), [f"i{place}" for place in range(30)]
    bags = np.where(draw.random((30, 8)) < 0.3, draw.random((30, 8)), 0).astype(np.float32)
    bags[:, 5] = 0  # a term that no picture has
    asked = csr_array(np.eye(8, dtype=np.float32)[[2, 5]])
    items = SparseEmbeddings(ids, csr_array(bags), list("abcdefgh"), "e", "d", "image", {"items": "30 items"})
    found = [ids[one] for one in np.argsort(-bags[:, 2], kind="stable") if bags[one, 2] > 0]
    for gigabytes, count in ((1.0, 30), (10 * 7 * 4 / 2**30, 10)):
        dense, terms = as_dense(items, gigabytes)
        assert dense.rows.shape == (count, 7)
        assert np.allclose(asked[:, terms].toarray() @ dense.rows.T, asked @ bags[:count].T)
        assert dense.about["items"].startswith("the first 10 of 30" if count == 10 else "30 items")
        few = replace(items, ids=ids[:count], rows=items.rows[:count])
        for rows, queries in ((few, asked), (dense, asked[:, terms].toarray())):
            assert best_of(rows, queries, with_terms=True) == [[i for i in found if i in few.ids], []]


@pytest.fixture(scope="module")
def tiny(scenes_folder):
    return Choices(setting="quick", data={"path": str(scenes_folder)}, values={**SMALL, **HEADS})


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / BASE.name
    return folder, run_study(BASE, folder, tiny, rows=ROWS)


@pytest.fixture
def studies(trained, tmp_path):
    return Path(shutil.copytree(trained[0].parent, tmp_path / "studies"))


def test_a_head_is_measured_beside_its_dense_rows(trained):
    folder, results = trained
    dense, head = (entry.measurements[0] for entry in results.entries)
    assert set(dense.values) == {"t2i R@1", "t2i R@5", "t2i R@10", "t2i MRR@10"}
    assert {*dense.values, *(c.name for n in (1, 3, 4, 5) for c in TABLES[n].columns)} <= set(head.values)
    assert (head.on.dataset, head.on.images, head.on.captions) == ("scenes", 16, 80)
    sparse = SparsifiedCollection.open(folder / "rows" / HEAD / "seed-0" / "sparse" / "scenes-test")
    assert head.values["FLOPs"] == pytest.approx(flops(sparse.texts.rows, sparse.images.rows))
    assert head.values["terms per image"] == pytest.approx(sparse.images.rows.nnz / 16)
    # By hand: how often no other picture scores as high as the caption's.
    scores = (sparse.texts.rows @ sparse.images.rows.T).toarray()
    own = scores[np.arange(80), sparse.caption_image][:, None]
    least, most = ((scores >= own).sum(axis=1) == 1).mean(), ((scores > own).sum(axis=1) == 0).mean()
    assert 100 * least - 1e-9 <= head.values["t2i R@1"] <= 100 * most + 1e-9
    ((values, pictures),) = results.evidence().queries((HEAD, "Exact@20"))
    assert values.mean() == pytest.approx(head.values["Exact@20"])
    assert pictures.tolist() == np.repeat(np.arange(16), 5).tolist()
    assert (results.entries[1].epochs, results.entries[1].given) == ((2, 2), "")


def test_what_is_there_is_used_by_all_tables(studies, tiny):
    told, folder, did = [], studies / FIGURE.name, ["there already", "measuring"]
    results = run_study(FIGURE, folder, tiny, rows=ROWS, tell=told.append)
    assert not (folder / "rows").exists()  # runs are table 3.1's
    page = study_page(compare(FIGURE, results)).html()
    assert page.count("<svg") == 4  # the comparison, here, as printed, the overlap
    assert run_study(FIGURE, folder, tiny, rows=ROWS, tell=told.append) == results
    assert [line.rsplit(": ", 1)[1] for line in told] == [*did * 2, *did[:1] * 2]
    # Examples are of the rows of table 3.4, on the same dense rows.
    heads, folder = [row.name for row in TABLES[4].rows], studies / TABLES[4].name
    galleries = compare(TABLES[4], run_study(TABLES[4], folder, tiny, rows=heads)).further.charts
    assert [[card.name for card in one.cards] for one in galleries] == [heads] * 6
    assert all(len(one.split(", ")) <= 10 for card in galleries[0].cards for one in card.facts.values())
    # What has moved keeps its values per query.
    (found,) = collect([(studies.rename(studies.parent / "moved")) / BASE.name])
    (claim,) = (judged for one, judged, _ in compare(BASE, found).claims if one.name == "below dense")
    assert any("p " in one.detail for one in claim.findings)


def test_one_of_another_training_or_data_is_refused(studies, tiny, tmp_path):
    def refused(said, folder=studies / BASE.name, **changes):
        with pytest.raises((UsageError, MismatchError), match=said) as caught:
            run_study(BASE, folder, replace(tiny, **changes), rows=ROWS)
        return caught.value.fix

    more = {**tiny.values, "sparsify.training.epochs": 3}
    assert refused("epochs = 2, requested is 3", values=more) == "choose another folder with --out"
    refused("was begun with model.width", values={**tiny.values, "model.width": 8})
    run = studies / BASE.name / "rows" / "dense" / "seed-0"
    given, test_alone = ({**HEADS, "dense": str(one)} for one in (run, run / "embeddings" / "scenes-test"))
    refused("has a training, not", values=given)
    other = {"path": str(make_scenes(tmp_path / "other", 8, 4, 16, size=32, seed=1, workers=1))}
    refused(r"has no row for image .*\(48 of 48 are missing\)", tmp_path / "a" / BASE.name, values=test_alone)
    # The encoder is the same, what it has embedded is not: nothing that was measured stands for it.
    folder = tmp_path / "c" / BASE.name
    run_study(BASE, folder, replace(tiny, values=given), rows=["dense"])
    refused(r"\(data ", folder, values=given, data=other)
    refused("own pairs", folder, values=given, positives="pairs:no.json")
    refused("not a training", folder)


def test_dense_rows_are_given(trained, tiny, tmp_path):
    """As a run, an encoder or embeddings: all are the same rows."""
    run, embeddings = trained[0] / "rows" / "dense" / "seed-0", tmp_path / "embeddings"
    for split in ("train", "val", "test"):
        shutil.copytree(run / "embeddings" / f"scenes-{split}", embeddings / split)
    before = {entry.row: entry.measurements[0].values for entry in trained[1].entries}
    for number, source in enumerate((run, run / "best", embeddings)):
        choices = replace(tiny, values={**HEADS, "dense": str(source)})
        rows = ROWS if source == embeddings else ROWS[:1]  # a head tells of the rows of training
        results = run_study(BASE, tmp_path / str(number) / BASE.name, choices, rows=rows)
        for entry in results.entries:
            assert entry.measurements[0].values == pytest.approx(before[entry.row], abs=1e-9)
        assert results.entries[0].given.startswith(f"{source} (fingerprint ")
        assert f"with what was given: {source} (fingerprint" in compare(BASE, results).label


def test_terms_are_held_against_the_vectors_that_are_named(studies, tiny, tmp_path):
    """One vector for all words: each is as near as can be."""
    captions = " ".join(read_collection(tiny.data["path"]).captions)
    words = np.unique(captions.lower().replace(".", "").split())
    np.savez(tmp_path / "words.npz", words=words, vectors=np.ones((len(words), 3), np.float32))
    named = replace(tiny, values={**tiny.values, "measure.words": str(tmp_path / "words.npz")})
    both = [run_study(BASE, studies / BASE.name, one, rows=[HEAD]) for one in (tiny, named)]
    before, after = (one.of(HEAD)[0].measurements[0] for one in both)
    assert "words.npz" in after.protocol
    assert before.values["Exact@20"] == after.values["Exact@20"]
    assert after.values["Semantic@20"] > before.values["Semantic@20"]
    for one, measured in zip(both, (before, after), strict=True):  # what is kept for one is not the other's
        ((values, _),) = one.evidence().queries((HEAD, "Semantic@20"))
        assert values.mean() == pytest.approx(measured.values["Semantic@20"])


def test_engines_are_searched_with_their_recall(studies, tiny, monkeypatch):
    for name, value in (("_LEAST", 0.0), ("_SECONDS", 1.0), ("_ONE_BY_ONE", 2)):
        monkeypatch.setattr(f"diptych.studies.searched.{name}", value)
    engines = ("hnsw-", "inverted-1e-3", "cascade-1e-3")
    rows = [row.name for row in SEARCHES.rows if row.name.startswith(engines)]
    choices = replace(tiny, values={**tiny.values, "search.items": 150, "search.queries": 20})
    results = run_study(SEARCHES, studies / SEARCHES.name, choices, rows=rows)
    measured = {entry.row: entry.measurements[0] for entry in results.entries}
    assert set(measured) == set(rows)
    for name, one in measured.items():
        assert {column.name for column in SEARCHES.columns} - {"FLOPs"} <= set(one.values)
        assert (one.on.split, one.on.images, one.on.captions) == ("all", 150, 20)
        assert one.values["latency @10|published"] == pytest.approx(1000 / one.values["throughput @10"])
        assert "150 items: 80 images of all splits, then copies with noise of 0.5" in one.protocol
        assert ("FLOPs" in one.values) is (name == "inverted-1e-3")
    recalls = {row: measured[row].values["recall @10"] for row in rows}
    assert [measured["inverted-1e-3"].values[f"recall @{k}"] for k in (10, 100, 1000)] == [100, 100, 100]
    assert min(recalls["hnsw-dense-equal"], recalls["hnsw-1e-3"]) >= 97
    assert "ef_search 16 @10" in measured["hnsw-dense-equal"].protocol
    assert recalls["cascade-1e-3"] <= recalls["cascade-1e-3-1000"]  # which has more candidates
    comparison = compare(SEARCHES, results)
    assert "&lt;1" in study_page(comparison).html()  # printed as a bound
    statuses = {claim.name: judgement.status for claim, judgement, _ in comparison.claims}
    assert statuses["HNSW of terms"] == "not tested"  # PISA was not run
    assert statuses["ours: as fast as dense"] != "not tested"
