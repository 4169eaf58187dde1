"""The page of a run: its numbers, what was logged, best and worst retrievals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.report.document import Page
from diptych.report.run import run_page
from diptych.training.recipe import collection_of
from diptych.training.run import Run

Made = tuple[Page, Result, EncodedCollection]


@pytest.fixture(scope="module")
def made(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    run = Run.open(run_folder)
    collection = collection_of(run.recipe.data).split("test")
    folder = tmp_path_factory.mktemp("encoded") / "e"
    encoded = encode_collection(DualEncoder.load(run.best), collection, folder, "test")
    result = evaluate_encoded(encoded, samples=50)
    return run_page(run, result, encoded, collection), result, encoded


def test_the_page_holds_the_results_numbers(made: Made) -> None:
    page, result, _ = made
    rows = {row[0].text: row for row in page.sections[0].blocks[0].rows}  # type: ignore[union-attr]
    assert rows["R@5"][2].value == result.value("R@5", "t2i")
    assert rows["rsum"][1].value == result.value("rsum")
    assert page.protocol == result.protocol_line()
    assert page.headlines[0].value == f"{result.value('rsum'):.1f}"
    assert result.protocol_line() in page.html()


def test_the_curves_are_what_was_logged(made: Made, run_folder: Path) -> None:
    loss, validation, _ = made[0].sections[1].blocks
    lines = list(Run.open(run_folder).metrics())
    assert list(loss.series[-1].y) == [line["loss"] for line in lines if "loss" in line]  # type: ignore[union-attr]
    drawn = validation.series  # type: ignore[union-attr]
    assert list(drawn[0].x) == [1, 2]
    assert list(drawn[1].x) == [Run.open(run_folder).numbers["best_epoch"]]
    # 16 images with 5 captions each: a picture misses the first k of 80 captions with all of its five.
    misses = [np.prod([(80 - k - i) / (80 - i) for i in range(5)]) for k in (1, 5, 10)]
    expected = 100 * sum(1 - miss for miss in misses) + 100 * (1 + 5 + 10) / 16
    assert drawn[2].y[0] == pytest.approx(expected)


def test_examples_are_the_best_and_the_worst(made: Made) -> None:
    page, result, encoded = made
    scores = np.asarray(encoded.texts.rows) @ np.asarray(encoded.images.rows).T
    best, worst = (
        [one for one in section.blocks if one.query.picture is None]  # type: ignore[union-attr]
        for section in page.sections[2:4]
    )
    ranks, names = result.ranks["t2i"], list(encoded.texts.ids)
    found = sorted((ranks[names.index(one.query.name)] for one in worst), reverse=True)  # type: ignore[union-attr]
    assert found == np.sort(ranks)[::-1][: len(worst)].tolist()
    for gallery in (*best, *worst):
        cards = gallery.cards  # type: ignore[union-attr]
        row = names.index(gallery.query.name)  # type: ignore[union-attr]
        order = [encoded.images.ids[at] for at in np.argsort(-scores[row], kind="stable")[:5]]
        assert [card.name for card in cards[:5]] == order
        right = encoded.images.ids[int(encoded.caption_image[row])]
        assert [card.state for card in cards[:5]] == ["right" if one == right else "wrong" for one in order]
        if right not in order:
            label = f"should be first, is {round(float(ranks[row])):,}"
            assert (cards[5].name, cards[5].label) == (right, label)
