from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from refusals import refused
from sklearn.linear_model import LogisticRegression

from diptych.analysis.information.audit import Encoded, audit, gap_of, held_of
from diptych.analysis.information.probing import (
    PENALTIES,
    Regressions,
    constant_bits,
    constant_frequencies,
    majority,
    probe,
)
from diptych.analysis.information.questions import (
    FUNCTION_WORDS,
    LEAST_IMAGES,
    UNLABELLED,
    UNSTATED,
    Answers,
    caption_facts,
    caption_words,
    carried_codes,
    content_words,
    image_facts,
    image_words,
    questions_of,
    stated_keys,
)
from diptych.core.errors import DataError, UnknownNameError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.scenes import described
from diptych.metrics.bootstrap import Bootstrap


def planted(n, n_classes, facts=2, others=2, width=48):
    """Rows that hold ``facts`` facts exactly (one-hot, rotated) and know nothing of ``others`` facts."""
    random = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(random.normal(size=(width, width)))
    rows, given = [], []
    for size in (n, 150, 250):
        drawn = random.integers(0, n_classes, (size, facts + others))
        exact = np.eye(n_classes)[drawn[:, :facts]].reshape(size, facts * n_classes)
        noise = random.normal(size=(size, width - exact.shape[1])) / np.sqrt(width)
        mixed = np.concatenate([exact, noise], axis=1) @ rotation
        rows.append((mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32))
        given.append(
            answers(**{f"f{fact}": drawn[:, fact].astype(str).tolist() for fact in range(facts + others)})
        )
    return tuple(rows), questions_of(*given)


class NoPictures:
    def content(self, row):
        return str(row)


def told(facts, states, captions=None, codes=None):
    """A collection from facts per image and stated keys per caption, or from captions alone."""
    per_image = states if captions is None else captions
    owner = np.repeat(np.arange(len(per_image)), [len(one) for one in per_image])
    texts = [str(text) for one in per_image for text in one]
    records = [{"facts": one} if facts else {} for one in facts or per_image]
    caption_records = [{"states": tuple(keys)} if facts else {} for one in per_image for keys in one]
    for image, carried in enumerate(codes or []):
        records[image] = {**records[image], "shortcuts": tuple(dict.fromkeys(carried))}
    for caption, code in enumerate(code for one in codes or [] for code in one):
        caption_records[caption]["shortcut"] = code
    n, ids = len(per_image), [f"c{number}" for number in range(len(owner))]
    where = ["train"] * n, NoPictures(), np.arange(n), records, caption_records
    return Collection("told", [f"i{number}" for number in range(n)], texts, ids, owner, *where)


def seen(n, seed, codes=False, width=24):
    """A split whose image rows hold ``shape`` and nothing of ``tint``, and whose captions say each one fact."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, 4, (n, 3))
    facts = [dict(zip(("shape", "place", "tint"), map(str, one), strict=True)) for one in drawn]
    numbers = [[f"{number:06d}"] * 2 for number in random.integers(0, 100, n)]
    part = told(facts, [[("shape", "place"), ("shape",)]] * n, codes=numbers if codes else None)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(width, width)))
    shape, place = (np.eye(4)[np.repeat(drawn[:, column], 2)] for column in (0, 1))
    place = np.where(np.arange(2 * n)[:, None] % 2 == 0, place, 0)
    images = np.concatenate([np.eye(4)[drawn[:, 0]], random.normal(size=(n, width - 4)) / 5], axis=1)
    texts = np.concatenate([shape, place, random.normal(size=(2 * n, width - 8)) / 5], axis=1)
    return Encoded(part, (images @ rotation).astype(np.float32), (texts @ rotation).astype(np.float32))


def test_an_audit_finds_what_was_planted():
    plain, coded = (
        tuple(seen(n, seed, codes) for seed, n in enumerate((400, 120, 200))) for codes in (False, True)
    )
    found = audit({"without": plain, "with": coded}, ("linear",), bootstrap=Bootstrap(200))

    def held(side, kind, condition="without"):
        return found.held(condition, side, kind, "linear")

    # shape is stated by both captions, place by one, tint by none; the image rows hold only the shape
    assert held("image", "shared").percent > 98
    assert held("image", "shared").there == pytest.approx(2, abs=0.02)
    assert all(held("image", kind).percent < 2 for kind in ("specific", "undescribed", "never described"))
    assert held("image", "partial") is held("image", "shortcut") is None
    assert all(held("caption", kind).percent > 95 for kind in ("shared", "specific"))
    # the second caption of an image does not say where, and cannot know: half of the captions, two bits each
    assert held("caption", "unstated").percent < 2
    assert held("caption", "unstated").there == pytest.approx(1, abs=0.02)
    for side in ("image", "caption"):
        digits = held(side, "shortcut", "with")
        assert digits.percent < 3
        assert digits.there == pytest.approx(2 * np.log2(10), abs=0.2)  # below 100: four digits are always 0
    assert any("4 with one value" in note for note in found.notes())
    gap = gap_of(found.conditions["without"]["image"], "linear")
    # two bits of shape from both captions, two of place from one of two
    assert (gap.shared, gap.minimal) == pytest.approx((2, 3), abs=0.03)
    assert gap.optimal == pytest.approx(4, abs=0.04)
    assert gap.held[0] == pytest.approx(2, abs=0.08)
    value, low, high = gap.gap
    assert low <= value <= high
    assert value == pytest.approx(gap.optimal - gap.held[0])
    coded = gap_of(found.conditions["with"]["image"], "linear")
    assert coded.shortcut == pytest.approx(2 * np.log2(10), abs=0.2)
    assert coded.minimal - coded.shortcut == pytest.approx(gap.minimal, abs=0.03)


def answers(**columns):
    values = np.array([list(column) for column in columns.values()], dtype=object).T
    return Answers(tuple(columns), values, {"all": np.ones(values.shape)}, np.arange(len(values)))


def test_answers_are_coded_by_those_of_training_rows():
    found = questions_of(
        answers(colour=["red", "blue", None, "red"]),
        answers(colour=["blue", None]),
        answers(colour=["red", "green", "blue"]),
    )
    assert found.n_classes == (2,)
    labels = [found.parts[place].labels[:, 0].tolist() for place in ("train", "validation", "test")]
    assert labels == [
        [1, 0, UNLABELLED, 1],
        [0, UNLABELLED],
        [1, UNLABELLED, 0],
    ]  # green is in no training row
    assert found.groups["all"][:, 0].tolist() == [1, 0, 1]
    assert any("1 test answers that no training row has" in note for note in found.notes)
    found = questions_of(
        answers(same="aaaa", good="abab", far="abab", unchosen="abab"),
        answers(same="aa", good="ab", far="ab", unchosen=[None, None]),
        answers(same="aaa", good="aba", far="aac", unchosen="aba"),
    )
    assert found.keys == ("good",)
    assert any("1 with one value" in note and "same" in note for note in found.notes)
    assert any("2 left out" in note and "far, unchosen" in note for note in found.notes)


def test_constant_prediction_by_hand():
    questions = questions_of(answers(k="aaab"), answers(k="aaabaaab"), answers(k="ab"))
    # (3 + 1) / 6 and (1 + 1) / 6: of the smoothings, 1 is nearest to what validation rows have
    np.testing.assert_allclose(constant_frequencies(questions)[0], [4 / 6, 2 / 6])
    bits = constant_bits(questions, questions.parts["test"].labels)[:, 0]
    np.testing.assert_allclose(bits, [-np.log2(4 / 6), -np.log2(2 / 6)])
    assert majority(questions).tolist() == [0]
    # few training rows that are not like the others are not trusted
    lopsided = questions_of(answers(k="aaab"), answers(k="ab" * 50), answers(k="ab"))
    np.testing.assert_allclose(constant_frequencies(lopsided)[0], [0.5, 0.5], atol=0.01)


def test_by_hand():
    there = np.array([[2.0, 1.0], [2.0, 0.0], [4.0, 0.0]])
    left = np.array([[1.0, 3.0], [0.0, 0.0], [3.0, 0.0]])
    whole, bad = held_of(there, left, np.array([3, 1]), np.arange(3), Bootstrap(0))
    assert whole.raw == pytest.approx(0.5)
    assert whole.there == pytest.approx(8 / 3)
    assert whole.bits == pytest.approx(4 / 3)
    # worse than no probe is nothing held, and the raw figure is kept
    assert bad.raw == pytest.approx(-2)
    assert (bad.percent, bad.bits, bad.ends) == (0, 0, (0, 0))
    # Intervals resample whole images: five rows of one image say no more than one row of it.
    there, left, how = (
        np.full((60, 1), 2.0),
        np.random.default_rng(0).uniform(0, 2, (60, 1)),
        Bootstrap(400, seed=1),
    )
    (single,) = held_of(there, left, np.ones(1), np.arange(60), how)
    many = [np.repeat(rows, 5, axis=0) for rows in (there, left, np.arange(60))]
    (five,) = held_of(many[0], many[1], np.ones(1), many[2], how)
    assert (five.raw, five.low, five.high) == pytest.approx((single.raw, single.low, single.high))
    assert single.low < single.raw < single.high


# One image with three captions, one with one.
FACTS = [{"shape": "star", "size": "big", "place": "top", "light": "left"}, {"shape": "ring", "light": "top"}]
STATES = [[("shape", "size"), ("shape", "size", "place"), ("shape",)], [("shape",)]]


def test_groups_are_those_of_described(scenes_folder):
    scenes = read_collection(scenes_folder).split("train")
    found = image_facts(scenes, stated_keys(scenes))
    for image in range(scenes.n_images):
        states = [
            scenes.caption_records[row]["states"] for row in range(*scenes.caption_start[image : image + 2])
        ]
        told = described(scenes.records[image]["facts"], states)
        for group in ("shared", "partial", "specific", "undescribed"):
            mine = {key for key, weight in zip(found.keys, found.groups[group][image], strict=True) if weight}
            assert mine == set(getattr(told, group)), (image, group)


def test_caption_groups_by_hand():
    part = told(FACTS, STATES)
    stated, rest = caption_facts(part, stated=True), caption_facts(part, stated=False)
    assert stated.values[:, 1].tolist() == ["big", "big", None, None]
    assert stated.images.tolist() == [0, 0, 0, 1]
    for found, group, key, expected in (
        (stated, "shared", "shape", [1, 1, 1, 1]),
        (stated, "partial", "size", [1, 1, 0, 0]),
        (stated, "specific", "place", [0, 1, 0, 0]),
        (rest, "unstated", f"{UNSTATED}size", [0, 0, 1, 0]),
        (rest, "unstated", f"{UNSTATED}place", [1, 0, 1, 0]),
        (rest, "unstated", f"{UNSTATED}light", [0, 0, 0, 0]),  # no caption states it: no question of captions
    ):
        assert found.groups[group][:, found.keys.index(key)].tolist() == expected


def test_a_code_per_caption():
    codes = [["000000", "000001", "000002"], ["000003"]]
    found = carried_codes(told(FACTS, STATES, codes=codes))
    assert found.keys[6] == "code 2 digit 1"
    assert found.values[1, 6] is None
    # each code is stated by one of three captions; all of them are task-relevant
    np.testing.assert_allclose(found.groups["one caption"][0], 1 / 3)
    assert (found.groups["task-relevant"][0] == 1).all()
    assert found.groups["task-relevant"][1].sum() == 6


def test_facts_and_states_of_another_shape_are_named():
    part = told(FACTS, STATES)
    odd = replace(part, records=[(part.records or ())[0], {"facts": "blue"}])
    refused(DataError, "facts of image i1 of told are 'blue'", image_facts, odd, frozenset())
    odd = replace(part, caption_records=[*(part.caption_records or ())[:3], {"states": "shape"}])
    refused(DataError, "caption c3 of told states 'shape'", caption_facts, odd, stated=True)


CAPTIONS = [
    ["A dog runs.", "The dog, brown", "dog dog"],
    ["a dog and a ball", "a cat", "a bird"],
    ["a Dog", "dog", "cat"],
    ["nobody", "nothing", "none"],
    ["one dog"],
]


def test_the_path_takes_the_best_penalty_of_each_question():
    rows, labels = data(3, seed=1)
    more_rows, more_labels = data(3, 400, seed=1)
    each = {penalty: Regressions((), (3,) * 4, rows.shape[1]) for penalty in (None, *PENALTIES)}
    chosen, *_ = (
        probes.fit((rows, labels), (more_rows, more_labels), penalty and torch.full((4,), penalty))
        for penalty, probes in each.items()
    )
    found, *costs = (probes.cross_entropy(more_rows, more_labels) for probes in each.values())
    np.testing.assert_allclose(found, torch.stack(costs).min(dim=0).values, atol=2e-3)
    assert set(chosen.tolist()) <= {torch.tensor(penalty).item() for penalty in PENALTIES}


def test_words_by_hand(monkeypatch):
    found = image_words(told(None, [], captions=CAPTIONS), ["dog"])
    assert found.keys == ("dog (all captions)", "dog (several captions)", "dog (one caption)")
    assert found.values.T.tolist() == [
        ["yes", None, None, "no", "yes"],
        [None, None, "yes", "no", None],
        [None, "yes", None, "no", None],
    ]
    assert found.groups["shared"].sum(axis=0).tolist() == [3, 0, 0]
    assert found.groups["specific"].sum(axis=0).tolist() == [0, 0, 2]
    found = caption_words(told(None, [], captions=CAPTIONS[:2]), ["dog", "ball"])
    assert found.values[:, 0].tolist() == ["yes", "yes", "yes", "yes", "no", "no"]
    assert found.values[:, 1].tolist() == ["no", "no", "no", "yes", "no", "no"]
    assert found.images.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.groups["words"].all()
    captions = []
    for image in range(2 * LEAST_IMAGES + 10):
        dog, ball = "dog " * (image < LEAST_IMAGES), "ball" * (image <= LEAST_IMAGES)
        captions.append([f"the everywhere {dog}{ball}", "rare" if image < LEAST_IMAGES - 1 else "with dogs"])
    part = told(None, [], captions=captions)
    # "dogs" and "everywhere" are in too many images, "rare" in too few, "the" and "with" say nothing
    assert content_words(part, "") == ("ball", "dog")
    monkeypatch.setattr("diptych.analysis.information.questions.MOST_WORDS", 1)
    assert content_words(part, "") == ("ball",)
    assert {"the", "with"} <= FUNCTION_WORDS


def shares(found, questions):
    """Held of each question."""
    there = constant_bits(questions, questions.parts["test"].labels)
    share: np.ndarray = 1 - found.bits.sum(axis=0) / there.sum(axis=0)
    return share


def test_planted_facts_are_held_others_are_not_and_controls_by_chance():
    for (name, least), n_classes in product((("linear", 0.99), ("mlp", 0.9)), (2, 5, 12)):
        rows, questions = planted(60 * n_classes, n_classes)
        found = probe(name, rows, questions)
        held = shares(found, questions)
        assert (held[:2] > least).all()
        assert (np.abs(held[2:]) < 0.03).all()  # neither many classes nor few make something of nothing
        assert (found.right[:, :2].mean(axis=0) > 0.97).all()
        assert (found.settings[:2] > 0).all()
        if n_classes == 5:
            assert (found.control_right.mean(axis=0) < 0.35).all()
            right, control = (one[:, :2].mean(axis=0) for one in (found.right, found.control_right))
            assert (right - control > 0.6).all()
            assert (found.by_heart[:2] > 0.3).all()  # it does learn some of its training answers
    refused(UnknownNameError, "mlp", probe, "tree", rows, questions)


def test_the_perceptron_finds_what_is_not_linear():
    """Whether two facts agree is in the rows, and no linear function of them."""
    rows, questions = planted(600, 2, others=0)
    parts = [questions.parts[split] for split in ("train", "validation", "test")]
    same = [np.where(part.labels[:, :1] == part.labels[:, 1:2], "yes", "no").astype(object) for part in parts]
    agree = questions_of(*(Answers(("agree",), one, {}, np.arange(len(one))) for one in same))
    linear, mlp = (shares(probe(name, rows, agree), agree)[0] for name in ("linear", "mlp"))
    assert linear < 0.05
    assert mlp > 0.6


def test_the_same_seed_gives_the_same_and_other_questions_change_nothing():
    rows, questions = planted(40, 2)
    single = questions.subset(np.array([1]), np.arange(40))
    for name in ("linear", "mlp"):
        first, again = (probe(name, rows, questions, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first.bits, again.bits)
        np.testing.assert_allclose(probe(name, rows, single, seed=3).bits[:, 0], first.bits[:, 1], atol=5e-3)
    assert (probe("mlp", rows, questions, seed=4).bits != first.bits).any()


def data(n_classes, n=240, width=7, seed=0):
    """Rows and labels of four questions that depend on them, a fifth of them unlabelled."""
    random = np.random.default_rng(seed)
    rows, columns = random.normal(size=(n, width)), []
    for _ in range(4):
        scores = rows @ random.normal(size=(width, n_classes)) + random.gumbel(size=(n, n_classes))
        columns.append(scores.argmax(axis=1))
    labels = np.stack(columns, axis=1)
    labels[random.random(labels.shape) < 0.2] = -1
    return torch.from_numpy(rows).float(), torch.from_numpy(labels)


def test_agrees_with_scikit_learn():
    for n_classes, penalty in product((2, 5), (0.3, 0.01, 0.0005)):
        rows, labels = data(n_classes)
        probes = Regressions((), (n_classes,) * 4, rows.shape[1])
        rows, probes.weights = (
            rows.double(),
            probes.weights.double(),
        )  # so that rounding does not stop it early
        probes.minimise(rows, labels, torch.full((4,), penalty), flat=1e-6)
        found = probes.log_probabilities(rows).exp().numpy()
        for question in range(4):
            there = labels[:, question] >= 0
            # scikit-learn's two-class form has one weight vector, on which our penalty weighs half
            weight = (2 if n_classes == 2 else 1) / (penalty * int(there.sum()))
            theirs = LogisticRegression(C=weight, tol=1e-8, max_iter=10_000)
            theirs.fit(rows[there].numpy(), labels[there, question].numpy())
            np.testing.assert_allclose(found[:, question], theirs.predict_proba(rows.numpy()), atol=1e-4)
