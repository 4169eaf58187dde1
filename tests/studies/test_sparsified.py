"""Chapter 3 in small: dense rows trained or given, heads on them, what is used again and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_runs import HEADS, SMALL, run_study

from diptych.core.errors import Interrupted, MismatchError, UsageError
from diptych.data import read_collection
from diptych.data.scenes import make_scenes
from diptych.encoders.embeddings import EncodedCollection
from diptych.sparse.measures import flops
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.studies import STUDIES, Choices, Results, collect, compare
from diptych.studies.page import study_page
from diptych.studies.results import per_query_of

BASE = STUDIES.get("d2s.table-3.1")
FIGURE = STUDIES.get("d2s.figure-3.2")


@pytest.fixture(scope="module")
def tiny(scenes_folder: Path) -> Choices:
    return Choices(setting="quick", data={"path": str(scenes_folder)}, values={**SMALL, **HEADS})


@pytest.fixture(scope="module")
def trained(tiny: Choices, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """Table 3.1 with its dense rows and one head."""
    folder = tmp_path_factory.mktemp("studies") / BASE.name
    return folder, run_study(BASE, folder, tiny, rows=["dense", "d2s-1e-3-c+w"])


@pytest.fixture
def studies(trained: tuple[Path, Results], tmp_path: Path) -> Path:
    """A copy of what is trained, for tests that change it."""
    shutil.copytree(trained[0].parent, tmp_path / "studies")
    return tmp_path / "studies"


def test_a_head_is_measured_beside_its_dense_rows(trained: tuple[Path, Results]) -> None:
    folder, results = trained
    assert [entry.row for entry in results.entries] == ["dense", "d2s-1e-3-c+w"]
    dense, head = (entry.measurements[0] for entry in results.entries)
    assert set(dense.values) == {"t2i R@1", "t2i R@5", "t2i R@10", "t2i MRR@10"}
    assert set(head.values) >= {
        *dense.values, "FLOPs", "terms per image", "Exact@20", "Exact@10", "Semantic@20", "overlap@10",
        "ρ-MRR@10", "Kendall τ",
    }  # fmt: skip
    assert (head.on.dataset, head.on.images, head.on.captions) == ("scenes", 16, 80)
    rows = folder / "rows"
    for split in ("train", "val", "test"):
        there = EncodedCollection.open(rows / "dense" / "seed-0" / "embeddings" / f"scenes-{split}")
        assert there.about["split"] == split
    sparse = SparsifiedCollection.open(rows / "d2s-1e-3-c+w" / "seed-0" / "sparse" / "scenes-test")
    assert head.values["FLOPs"] == pytest.approx(flops(sparse.texts.rows, sparse.images.rows))
    assert head.values["terms per image"] == pytest.approx(sparse.images.rows.nnz / 16)
    # By hand: how often the caption's picture has the highest score of all.
    scores = (sparse.texts.rows @ sparse.images.rows.T).toarray()
    own = scores[np.arange(80), sparse.caption_image]
    above = (scores > own[:, None]).sum(axis=1)
    assert 100 * np.mean(above < 5) >= head.values["t2i R@5"] - 1e-9
    kept = per_query_of(results.evidence(), "d2s-1e-3-c+w", "Exact@20")
    assert kept is not None
    assert kept[0].mean() == pytest.approx(head.values["Exact@20"])
    assert kept[1].tolist() == np.repeat(np.arange(16), 5).tolist()
    entry = results.entries[1]
    assert entry.cpu_seconds > 0
    assert entry.epochs == (2, 2)
    assert "sparsify.training.epochs" in entry.changed
    assert not entry.fine_tuned_from  # its dense rows are of the study's own training


def test_what_is_there_is_used_by_all_tables(studies: Path, tiny: Choices) -> None:
    told: list[str] = []
    folder = studies / FIGURE.name
    rows = ["dense", "d2s-1e-3-c+w"]
    results = run_study(FIGURE, folder, tiny, rows=rows, tell=told.append)
    assert [line.split(": ", 1)[1] for line in told] == [
        "Dense: there already",
        "Dense: measuring",
        "D2S, η = 1e-3, exp = c + w: there already",
        "D2S, η = 1e-3, exp = c + w: measuring",
    ]
    assert not (folder / "rows").exists()  # runs are table 3.1's
    page = study_page(compare(FIGURE, results)).html()
    assert page.count("<svg") == 4  # the comparison, here, as printed, the overlap
    assert "Overlap of the top 10" in page
    told.clear()
    again = run_study(FIGURE, folder, tiny, rows=rows, tell=told.append)
    assert [line.rsplit(": ", 1)[1] for line in told] == ["there already", "there already"]
    assert again == results


def test_studies_that_have_moved_keep_their_values_per_query(studies: Path, tmp_path: Path) -> None:
    (studies).rename(tmp_path / "moved")
    (found,) = collect([tmp_path / "moved" / BASE.name])
    assert per_query_of(found.evidence(), "d2s-1e-3-c+w", "t2i R@1") is not None
    comparison = compare(BASE, found)
    (claim,) = (judgement for one, judgement, _ in comparison.claims if one.name == "below dense")
    assert any("tests" in finding.what and finding.holds is not None for finding in claim.findings)


def test_one_of_another_training_is_refused(studies: Path, tiny: Choices) -> None:
    def run(**values: object) -> Results:
        choices = replace(tiny, values={**tiny.values, **values})
        return run_study(BASE, studies / BASE.name, choices, rows=["d2s-1e-3-c+w"])

    with pytest.raises(UsageError, match=r"training\.epochs = 2, asked for is 3") as caught:
        run(**{"sparsify.training.epochs": 3})
    assert caught.value.fix == "choose another folder with --out"
    with pytest.raises(UsageError, match="was trained with model"):
        run(**{"model.width": 8})
    with pytest.raises(UsageError, match="has the rows of a training, not those of"):
        given = {**HEADS, "dense": str(studies / BASE.name / "rows" / "dense" / "seed-0")}
        run_study(BASE, studies / BASE.name, replace(tiny, values=given), rows=["dense"])


def test_an_interrupted_head_goes_on_to_the_same_numbers(
    studies: Path, tiny: Choices, trained: tuple[Path, Results]
) -> None:
    told: list[str] = []
    folder = studies / BASE.name
    shutil.rmtree(folder / "rows" / "d2s-1e-3-c+w")
    rows = ["d2s-1e-3-c+w"]

    def run(should_stop: Callable[[], bool] = lambda: False) -> Results:
        return run_study(BASE, folder, tiny, rows=rows, should_stop=should_stop, tell=told.append)

    steps = iter([False] * 2 + [True] * 100)
    with pytest.raises(Interrupted):
        run(lambda: any((folder / "rows" / rows[0]).rglob("metrics.jsonl")) and next(steps))
    assert told[-1].endswith("training")
    told.clear()
    resumed = run()
    assert [line.rsplit(": ", 1)[1] for line in told] == ["there already", "goes on", "measuring"]
    before = trained[1].of(rows[0])[0].measurements[0].values
    assert resumed.of(rows[0])[0].measurements[0].values == before


def test_dense_rows_are_given(trained: tuple[Path, Results], scenes_folder: Path, tmp_path: Path) -> None:
    """As a run, an encoder, embeddings or arrays with ids: all are the same rows."""
    run = trained[0] / "rows" / "dense" / "seed-0"
    embeddings, parts = tmp_path / "embeddings", []
    for split in ("train", "val", "test"):
        shutil.copytree(run / "embeddings" / f"scenes-{split}", embeddings / split)
        parts.append(EncodedCollection.open(embeddings / split))
    for side in ("images", "texts"):
        rows = [getattr(part, side) for part in parts]
        np.save(tmp_path / f"{side}.npy", np.concatenate([np.asarray(one.rows) for one in rows]))
        (tmp_path / f"{side}.txt").write_text("".join(f"{name}\n" for one in rows for name in one.ids))
    of = {entry.row: entry.measurements[0].values for entry in trained[1].entries}
    for number, source in enumerate((run, run / "best", embeddings, f"rows:{tmp_path}")):
        data, values = {"path": str(scenes_folder)}, {**HEADS, "dense": str(source)}
        choices = Choices(setting="quick", data=data, values=values)
        folder = tmp_path / str(number) / BASE.name
        # One head tells that the rows of training are the same too.
        results = run_study(BASE, folder, choices, rows=list(of) if source == embeddings else ["dense"])
        for entry in results.entries:
            assert entry.measurements[0].values == pytest.approx(of[entry.row], abs=1e-9)
            assert entry.fine_tuned_from.startswith(f"{source} (fingerprint ")
        assert f"on rows of {source} (fingerprint" in compare(BASE, results).label
    with pytest.raises(UsageError, match="has the rows of .*, not of a training"):
        run_study(BASE, folder, replace(choices, values={**SMALL, **HEADS}), rows=["dense"])


def test_embeddings_of_other_data_are_refused(
    trained: tuple[Path, Results], tiny: Choices, tmp_path: Path
) -> None:
    run = trained[0] / "rows" / "dense" / "seed-0"
    test_alone = {**HEADS, "dense": str(run / "embeddings" / "scenes-test")}
    other = {"path": str(make_scenes(tmp_path / "other", 8, 4, 16, size=32, seed=1, workers=1))}
    choices = replace(tiny, values=test_alone)
    with pytest.raises(MismatchError, match="has no rows of 48 of 48 pictures"):
        run_study(BASE, tmp_path / "a" / BASE.name, choices, rows=["d2s-1e-3-c+w"])
    with pytest.raises(MismatchError, match="has no rows of"):
        run_study(BASE, tmp_path / "b" / BASE.name, replace(choices, data=other), rows=["dense"])
    # The encoder is the same, what it has embedded is not: nothing that was measured stands for it.
    given = replace(tiny, values={**HEADS, "dense": str(run)})
    run_study(BASE, tmp_path / "c" / BASE.name, given, rows=["dense"])
    with pytest.raises(UsageError, match="has rows with data"):
        run_study(BASE, tmp_path / "c" / BASE.name, replace(given, data=other), rows=["dense"])
    with pytest.raises(UsageError, match="own pairs"):
        run_study(BASE, tmp_path / "c" / BASE.name, replace(given, positives="pairs:no.json"), rows=["dense"])


def test_terms_are_held_against_the_vectors_that_are_named(
    studies: Path, tiny: Choices, tmp_path: Path
) -> None:
    """One vector for all words: whatever a caption's terms are, each is as near as can be."""
    assert tiny.data is not None
    captions = read_collection(tiny.data["path"]).captions
    words = sorted({word for caption in captions for word in caption.lower().strip(".").split()})
    np.savez(tmp_path / "words.npz", words=np.array(words), vectors=np.ones((len(words), 3), np.float32))
    named = replace(tiny, values={**tiny.values, "measure.words": str(tmp_path / "words.npz")})
    folder = studies / BASE.name
    plain = run_study(BASE, folder, tiny, rows=["d2s-1e-3-c+w"])
    results = run_study(BASE, folder, named, rows=["d2s-1e-3-c+w"])
    before, after = (one.of("d2s-1e-3-c+w")[0].measurements[0] for one in (plain, results))
    assert "words.npz" in after.protocol
    assert "co-occurrence in 240 training captions" in before.protocol
    assert before.values["Exact@20"] == after.values["Exact@20"]
    assert after.values["Semantic@20"] > before.values["Semantic@20"]
    # What is kept for one is not the other's.
    for one in (plain, results):
        kept = per_query_of(one.evidence(), "d2s-1e-3-c+w", "Semantic@20")
        assert kept is not None
        measured = one.of("d2s-1e-3-c+w")[0].measurements[0].values["Semantic@20"]
        assert kept[0].mean() == pytest.approx(measured)
