from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_matching import FakeMatching
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import evaluate_reranked, scored
from refusals import refused
from slow_ranking import orders, value

from diptych.core.errors import DataError, MismatchError, NumericalError, UnknownNameError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import rerank
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of
from diptych.metrics import DIRECTIONS, TIE_RULES, Candidates, GroundTruth, Reranked, read_qrels, read_run

MEASURES = ("R@1", "R@3", "R@10", "MRR", "meanr", "P@3", "mAP", "mAP@2", "R-precision")
SLOW = {"R": "R", "P": "P", "mAP": "mAP", "MRR": "MRR", "meanr": "rank", "R-precision": "R-precision"}


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, GroundTruth, int]:
    """Few values, so that both stages tie often; positives of both directions may differ."""
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    images = random.integers(-1, 2, (n, 2)).astype(np.float32)
    texts = random.integers(-1, 2, (m, 2)).astype(np.float32)
    low = draw(st.sampled_from([-101, -1]))  # the head may give less than what marks the unscored
    matching = random.integers(low, low + 3, (n, m)).astype(np.float32)
    pairs = [np.nonzero(random.random((n, m)) < 0.4) for _ in range(2)]
    same = draw(st.booleans())
    truth = GroundTruth.from_directions(pairs[0], pairs[0] if same else pairs[1], n, m)
    return images, texts, matching, truth, draw(st.integers(1, 6))


def slow(
    given: Reranked, scores: np.ndarray, truth: GroundTruth, name: str, rule: str, ties: str
) -> dict[str, list[float]]:
    """One value per query by writing out every order of the ranking that is allowed."""
    family, _, cutoff = name.partition("@")
    found: dict[str, list[float]] = {}
    for direction in DIRECTIONS:
        one, final = given.candidates(direction), given.final(direction)
        table = scores if direction == "i2t" else scores.T
        found[direction] = []
        for query, first in enumerate(table.tolist()):
            mine = set(truth.positives(direction).of(query).tolist())
            chosen = dict(zip(one.items[query].tolist(), final[query].tolist(), strict=True))
            rows = sorted(chosen) if rule == "miss" else list(range(len(first)))
            behind = (1, -100.0) if rule == "published" else (0, 0.0)
            keys = [
                (1, chosen[row]) if row in chosen else (0, first[row]) if rule == "contrastive" else behind
                for row in rows
            ]
            places = {place for place, row in enumerate(rows) if row in mine}
            dense = [float(sorted(set(keys)).index(key)) for key in keys]
            rankings = [[rows[place] for place in order] for order in orders(dense, places, ties)]
            values = [
                _value(order, mine, SLOW[family], int(cutoff or 0) or None, len(first)) for order in rankings
            ]
            found[direction].append(float(sum(values) / len(values)))
    return found


def _value(order: list[int], mine: set[int], name: str, cutoff: int | None, gallery: int) -> float:
    """One measure of a ranking that may end early: what is missing is put behind everything else."""
    ranked = mine & set(order)
    if not ranked:
        return gallery + 1 if name == "rank" else 0.0
    if name == "R-precision":  # divided by all positives, ranked or not
        return len(mine & set(order[: len(mine)])) / len(mine)
    if name == "mAP":
        top = order[: cutoff or len(order)]
        precisions = [len(mine & set(top[: i + 1])) / (i + 1) for i, row in enumerate(top) if row in mine]
        return sum(precisions) / min(len(mine), cutoff or gallery)
    return float(value(order, ranked, name, cutoff))


@settings(max_examples=30)
@given(case=cases(), ties=st.sampled_from(TIE_RULES), adds=st.booleans())
def test_every_rule_against_writing_it_out(case: Any, ties: str, adds: bool) -> None:
    for rule in ["miss", "contrastive", "published"]:
        images, texts, matching, truth, k = case
        given = scored(images, texts, matching, k, adds)
        scores = images.astype(np.float64) @ texts.astype(np.float64).T
        rows = {"images": images, "texts": texts} if rule == "contrastive" else {}
        best = evaluate_reranked(given, truth, MEASURES[:5], unranked=rule, ties=ties, **rows)
        every = evaluate_reranked(given, truth, MEASURES, unranked=rule, ties=ties, **rows)
        for name in MEASURES:
            expected = slow(given, scores, truth, name, rule, ties)
            for direction in DIRECTIONS:
                assert every.per_query[direction][name] == pytest.approx(expected[direction]), name
                if name in MEASURES[:5]:
                    assert best.per_query[direction][name] == pytest.approx(expected[direction]), name
                else:
                    assert name not in best.per_query[direction]


# The tiny ALBEF of the golden values: 5 images, 7 texts, the published code's scores at k = 3.
I2T = [
    [-100.0, 0.5482298731803894, 0.6695032715797424, -100.0, -100.0, -100.0, 0.7300499081611633],
    [-100.0, -100.0, 1.803931474685669, -100.0, -100.0, 1.6848664283752441, 1.7445635795593262],
    [-100.0, -100.0, 1.5104620456695557, -100.0, -100.0, 1.534597635269165, 1.4668574333190918],
    [-100.0, 1.6249299049377441, -100.0, -100.0, -100.0, 1.6313180923461914, 1.716742992401123],
    [1.1159026622772217, -100.0, 1.2121505737304688, -100.0, -100.0, 1.1832094192504883, -100.0],
]
T2I = [
    [-100.0, 1.9055962562561035, -100.0, 1.7342512607574463, 1.1159026622772217],
    [0.5482298731803894, 1.3919355869293213, -100.0, 1.6249299049377441, -100.0],
    [0.6695032715797424, 1.803931474685669, -100.0, 1.6611595153808594, -100.0],
    [0.4727761149406433, 1.39982271194458, -100.0, 1.534289836883545, -100.0],
    [0.4313816428184509, 1.518904447555542, -100.0, 1.641435146331787, -100.0],
    [0.5627020001411438, 1.6848664283752441, -100.0, 1.6313180923461914, -100.0],
    [0.7300499081611633, 1.7445635795593262, -100.0, 1.716742992401123, -100.0],
]
SIMS = [
    [-0.13581637, -0.11048902, -0.09679843, -0.18193430, -0.14573634, -0.11327211, -0.08406799],
    [0.02623241, -0.02137803, 0.05701282, -0.09432952, 0.00017789, 0.02899881, 0.06483320],
    [-0.29510790, -0.33281064, -0.27004975, -0.36780387, -0.27902061, -0.26957270, -0.27791253],
    [-0.06543019, 0.08154400, -0.02465599, -0.05259061, 0.01058939, 0.02304015, 0.09588266],
    [-0.11911592, -0.16828890, -0.10094532, -0.24264647, -0.14657834, -0.11912192, -0.12859067],
]
TEXT_IMAGE = [0, 0, 1, 2, 2, 3, 4]


def golden() -> Reranked:
    sides = []
    for table, sims in ((np.array(I2T), np.array(SIMS)), (np.array(T2I), np.array(SIMS).T)):
        items = np.argsort(-sims, axis=1, kind="stable")[:, :3]
        parts = [np.take_along_axis(one, items, axis=1).astype(np.float32) for one in (sims, table)]
        sides.append(Candidates(items, *parts))
    return Reranked(*sides)


def test_golden_scores_and_what_the_published_evaluation_prints() -> None:
    found, truth, names = golden(), GroundTruth.from_caption_image(TEXT_IMAGE, 5), ("R@1", "R@5", "R@10")
    np.testing.assert_allclose(found.matrix("i2t"), I2T, rtol=1e-7)
    np.testing.assert_allclose(found.matrix("t2i"), T2I, rtol=1e-7)
    result = evaluate_reranked(found, truth, names, unranked="published")
    assert (result.protocol.ties, result.protocol.compat) == ("compat", ("ties", "unranked"))
    # What of that R@5 was scored: the rest is the order of cells that were not.
    honest = evaluate_reranked(found, truth, (*names, "meanr", "MRR"))
    for way, printed, scored_ in (
        ("i2t", [0.2, 1, 1], [0.2, 0.6, 0.6]),
        ("t2i", [1 / 7, 1, 1], [1 / 7, 3 / 7, 3 / 7]),
    ):
        assert [result.value(name, way) for name in names] == pytest.approx(printed)
        assert [honest.value(name, way) for name in names] == pytest.approx(scored_)


def small() -> tuple[Reranked, GroundTruth]:
    """Three images, four texts, k_test 2; text 3 has no image, image 2's text is no candidate of it."""
    i2t = Candidates(
        np.array([[0, 1], [1, 2], [0, 1]]),
        np.array([[0.9, 0.8], [0.9, 0.8], [0.9, 0.8]], np.float32),
        np.array([[1, 2], [2, 2], [1, 0]], np.float32),
    )
    t2i = Candidates(
        np.array([[0, 2], [0, 1], [2, 0], [1, 0]]),
        np.full((4, 2), 0.5, np.float32),
        np.array([[1, 2], [2, 1], [5, 4], [3, 2]], np.float32),
    )
    return Reranked(i2t, t2i), GroundTruth.from_pairs([0, 1, 2], [0, 1, 2], 3, 4)


def test_by_hand() -> None:
    given, truth = small()
    result = evaluate_reranked(given, truth, ("R@1", "R@2", "R@10", "medr", "meanr", "MRR"))
    # Image 0: its text scores 1, the other 2: rank 2. Image 1: a tie at 2, rank 1.5. Image 2: unranked.
    assert result.ranks["i2t"].tolist() == [2, 1.5, 5]
    assert result.per_query["i2t"]["R@1"].tolist() == [0, 0.5, 0]
    assert result.per_query["i2t"]["MRR"].tolist() == [0.5, 0.75, 0]
    assert result.value("R@10", "i2t") == pytest.approx(2 / 3)
    assert result.value("medr", "i2t") == 2
    # Text 0: image 0 scores 1, image 2 scores 2. Text 1: image 1 scores 1, image 0 2. Text 2: first.
    assert result.ranks["t2i"].tolist() == [2, 2, 1, 4]
    assert result.protocol_line() == (
        "full: 3 images, 4 texts (1 per image, 0–1 per text); re-ranked k_test 2 by matching score, unranked "
        "miss: 1 of 3 i2t and 0 of 4 t2i queries have no ranked positive, which rank after the gallery; "
        "any-of-k for R@1, R@2, R@10, medr, meanr, MRR; ties expected; "
        "1 t2i queries without a positive count as 0"
    )


def test_a_random_head_is_at_chance() -> None:
    """Candidates and scores drawn at random: the mean over many draws is the chance that is printed."""
    random = np.random.default_rng(0)
    n, m, k, runs = 6, 18, 4, 150
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(n), 3), n)
    names = ("R@1", "R@3", "R@10", "MRR", "meanr", "mAP@5", "P@5", "mAP-hits@5", "R-precision")
    found: dict[tuple[str, str], list[float]] = {}
    chances: dict[tuple[str, str], float] = {}
    for _ in range(runs):
        sides = []
        for queries, gallery in ((n, m), (m, n)):
            items = np.stack([random.permutation(gallery)[:k] for _ in range(queries)])
            scores = np.sort(random.normal(size=items.shape))[:, ::-1]
            sides.append(Candidates(items, scores.astype("f4"), random.normal(size=items.shape).astype("f4")))
        result = evaluate_reranked(Reranked(*sides), truth, names)
        for direction in DIRECTIONS:
            for name in names:
                score = result.score(name, direction)
                found.setdefault((direction, name), []).append(score.value)
                chances[direction, name] = score.chance
    for key, values in found.items():
        assert abs(np.mean(values) - chances[key]) < 4 * np.std(values) / np.sqrt(runs) + 1e-12, key
    assert chances["i2t", "R@10"] == pytest.approx(1 - (15 * 14 * 13 * 12) / (18 * 17 * 16 * 15))
    assert chances["t2i", "R@10"] == pytest.approx(4 / 6)


def test_extended_positives_and_queries_that_are_not_evaluated() -> None:
    pairs = ([0, 0, 1], [0, 3, 2]), ([0, 2], [1, 0])
    truth = GroundTruth.from_directions(*pairs, 3, 4, evaluated={"i2t": [0, 1], "t2i": [0, 2]})
    result = evaluate_reranked(small()[0], truth, ("R@2", "mAP"))
    assert np.isnan(result.per_query["i2t"]["R@2"][2])
    # Image 0 has text 0 at rank 2 and text 3 nowhere: (1/2 + 0) / 2. Image 1: text 2 ties at the top.
    assert result.per_query["i2t"]["mAP"][:2].tolist() == pytest.approx([0.25, 0.75])
    assert "0 of 2 i2t and 0 of 2 t2i queries have no ranked positive" in result.protocol_line()
    assert "1 t2i queries without a positive" in result.protocol_line()


def test_what_cannot_be() -> None:
    (found, truth), rows = small(), np.ones((2, 3), np.float32)
    by_rows, one_gallery = {"images": rows, "texts": rows}, "galleries, and candidates were chosen from one"
    for options, error, message in (
        ({"k": 3}, UsageError, "k = 3, but 2 candidates"),
        ({"k": 0}, UsageError, "k = 0, but"),
        ({"unranked": "contrastive"}, UsageError, "its rows were not given"),
        ({"unranked": "contrastive", **by_rows}, DataError, "2 image rows for a ground truth"),
        ({"protocol": "coco-1k"}, UsageError, one_gallery),
        ({"protocol": "folds(3)"}, UsageError, one_gallery),
        ({"measures": ["nDCG@5"]}, UsageError, "nDCG@5 looks at the first places of the whole gallery"),
        ({"unranked": "ties"}, UnknownNameError, "ties"),
        ({"ties": "random"}, UnknownNameError, "random"),
    ):
        refused(error, message, evaluate_reranked, found, truth, **options)
    assert evaluate_reranked(found, truth, protocol="folds(1)").protocol.name == "folds(1)"
    sizes = "3 images and 4 texts for a ground truth of 2 images and 2 texts"
    refused(DataError, sizes, evaluate_reranked, found, GroundTruth.from_caption_image([0, 1], 2))
    nan = replace(found.i2t, matching=np.full((3, 2), np.nan, np.float32))
    message = "i2t query 0: a matching score is not finite"
    refused(NumericalError, message, evaluate_reranked, Reranked(nan, found.t2i), truth)


@pytest.fixture(scope="module")
def made(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[EncodedCollection, Reranked]:
    collection = read_collection(str(scenes_folder)).split("test")
    encoded = encode_collection(FakeMatching(), collection, tmp_path_factory.mktemp("rows"), "test")
    return encoded, rerank(FakeMatching(), collection, encoded, 5)


def test_numbers_files_and_protocol(made: tuple[EncodedCollection, Reranked], tmp_path: Path) -> None:
    encoded, reranked = made
    rows = {"images": encoded.images.rows, "texts": encoded.texts.rows}
    for unranked in ("miss", "contrastive", "published"):
        folder, how = tmp_path / unranked, {"k": 3, "unranked": unranked}
        result = evaluate_encoded(encoded, folder, reranked=reranked, samples=20, **how)
        assert (
            result.values() == evaluate_reranked(reranked, ground_truth_of(encoded), **how, **rows).values()
        )
        line = Result.open(folder).protocol_line()
        assert line.startswith(f"dataset scenes; split test; encoder {FakeMatching().fingerprint}; data ")
        assert f"re-ranked k_test 3 by matching score, unranked {unranked}: " in line
        assert "intervals from 20 resamples" in line
        # The run files give the same recall: only candidates, in the order of the head.
        for name, n in (("i2t", 16), ("t2i", 80)):
            run, qrels = read_run(folder / f"{name}.run"), read_qrels(folder / f"{name}.qrels")
            assert len(run) == len(qrels) == n
            assert {len(found) for found in run.values()} == {3}
            first = [qrels[query].get(found[0][0], 0) for query, found in run.items()]
            assert np.mean(first) == pytest.approx(result.value("R@1", name))
    for key in ("encoder", "data"):
        other = replace(reranked, about={**reranked.about, key: "other"})
        message = f"the candidates are of {key} other, the embeddings of "
        refused(MismatchError, message, evaluate_encoded, encoded, reranked=other)
    refused(UsageError, "k = 6, but 5 candidates", evaluate_encoded, encoded, reranked=reranked, k=6)
