from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused
from sklearn.linear_model import LogisticRegression

from diptych.analysis.information import Encoded, audit, gap_of
from diptych.analysis.information.audit import held_of
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


def as_answers(values):
    keys = tuple(f"f{number}" for number in range(values.shape[1]))
    return Answers(keys, values, {"all": np.ones(values.shape)}, np.arange(len(values)))


def planted(n, n_classes, facts=2, others=2, width=48):
    """Rows that hold ``facts`` facts exactly (one-hot, rotated) and know nothing of ``others`` facts."""
    random = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(random.normal(size=(width, width)))
    rows, answers = [], []
    for size in (n, 150, 250):
        drawn = random.integers(0, n_classes, (size, facts + others))
        exact = np.eye(n_classes)[drawn[:, :facts]].reshape(size, facts * n_classes)
        noise = random.normal(size=(size, width - exact.shape[1])) / np.sqrt(width)
        mixed = np.concatenate([exact, noise], axis=1) @ rotation
        rows.append((mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32))
        answers.append(as_answers(drawn.astype(str).astype(object)))
    return tuple(rows), questions_of(*answers)


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


@pytest.fixture(scope="module")
def found():
    plain, coded = (
        tuple(seen(n, seed, codes) for seed, n in enumerate((400, 120, 200))) for codes in (False, True)
    )
    return audit(
        {"without": plain, "with": coded}, ("linear",), bootstrap=Bootstrap(200), about={"dataset": "told"}
    )


def test_images_hold_what_was_put_into_them(found):
    # shape is stated by both captions, place by one, tint by none; the rows hold the shape alone
    shared = found.held("without", "image", "shared", "linear")
    assert shared.percent > 98
    assert shared.there == pytest.approx(2, abs=0.02)
    for kind in ("specific", "undescribed", "never described"):
        held = found.held("without", "image", kind, "linear")
        assert held.percent < 2, kind
    assert found.held("without", "image", "partial", "linear") is None
    assert found.held("without", "image", "shortcut", "linear") is None


def test_captions_hold_what_they_state(found):
    for kind in ("shared", "specific"):
        held = found.held("without", "caption", kind, "linear")
        assert held.percent > 95, kind
    # the second caption of an image does not say where, and cannot know
    unstated = found.held("without", "caption", "unstated", "linear")
    assert unstated.percent < 2
    assert unstated.there == pytest.approx(1, abs=0.02)  # half of the captions, two bits each


def test_shortcuts_that_are_there_and_not_held(found):
    for side in ("image", "caption"):
        held = found.held("with", side, "shortcut", "linear")
        assert held.percent < 3
        # codes below 100: four digits are always 0
        assert held.there == pytest.approx(2 * np.log2(10), abs=0.2)
    assert any("4 with one value" in note for note in found.notes())


def test_the_gap_by_hand(found):
    gap = gap_of(found.conditions["without"]["image"], "linear")
    # two bits of shape from both captions, two of place from one of two
    assert gap.shared == pytest.approx(2, abs=0.03)
    assert gap.minimal == pytest.approx(3, abs=0.03)
    assert gap.optimal == pytest.approx(4, abs=0.04)
    assert gap.held[0] == pytest.approx(2, abs=0.08)
    value, low, high = gap.gap
    assert low <= value <= high
    assert value == pytest.approx(gap.optimal - gap.held[0])
    coded = gap_of(found.conditions["with"]["image"], "linear")
    assert coded.shortcut == pytest.approx(2 * np.log2(10), abs=0.2)
    assert coded.minimal - coded.shortcut == pytest.approx(gap.minimal, abs=0.03)


def answers(columns, weights=1.0):
    values = np.array(list(columns.values()), dtype=object).T
    return Answers(tuple(columns), values, {"all": np.full(values.shape, weights)}, np.arange(len(values)))


def test_labels_are_numbers_of_the_training_answers():
    found = questions_of(
        answers({"colour": ["red", "blue", None, "red"]}),
        answers({"colour": ["blue", None]}),
        answers({"colour": ["red", "green", "blue"]}),
    )
    assert found.n_classes == (2,)
    assert found.parts["train"].labels[:, 0].tolist() == [1, 0, UNLABELLED, 1]
    assert found.parts["validation"].labels[:, 0].tolist() == [0, UNLABELLED]
    # nobody trained on green
    assert found.parts["test"].labels[:, 0].tolist() == [1, UNLABELLED, 0]
    assert found.groups["all"][:, 0].tolist() == [1, 0, 1]
    assert any("1 test answers that no training row has" in note for note in found.notes)


def test_what_cannot_be_asked_is_left_out_and_counted():
    found = questions_of(
        answers({"same": ["a"] * 4, "good": list("abab"), "far": list("abab"), "unchosen": list("abab")}),
        answers({"same": ["a"] * 2, "good": list("ab"), "far": list("ab"), "unchosen": [None, None]}),
        answers({"same": ["a"] * 3, "good": list("aba"), "far": list("aac"), "unchosen": list("aba")}),
    )
    assert found.keys == ("good",)
    assert any("1 with one value" in note and "same" in note for note in found.notes)
    assert any("2 left out" in note and "far, unchosen" in note for note in found.notes)


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


def test_interval_resamples_whole_images():
    """Five rows of one image say no more than one row of it."""
    random = np.random.default_rng(0)
    there = np.full((60, 1), 2.0)
    left = random.uniform(0, 2, (60, 1))
    bootstrap = Bootstrap(400, seed=1)
    (single,) = held_of(there, left, np.ones(1), np.arange(60), bootstrap)
    (five,) = held_of(
        np.repeat(there, 5, axis=0),
        np.repeat(left, 5, axis=0),
        np.ones(1),
        np.repeat(np.arange(60), 5),
        bootstrap,
    )
    assert (five.raw, five.low, five.high) == pytest.approx((single.raw, single.low, single.high))
    assert single.low < single.raw < single.high


# One image with three captions, one with one.
FACTS = [{"shape": "star", "size": "big", "place": "top", "light": "left"}, {"shape": "ring", "light": "top"}]
STATES = [[("shape", "size"), ("shape", "size", "place"), ("shape",)], [("shape",)]]


def column(answers, group, key):
    return answers.groups[group][:, answers.keys.index(key)].tolist()


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
    stated = caption_facts(part, stated=True)
    assert stated.values[:, 1].tolist() == ["big", "big", None, None]
    assert stated.images.tolist() == [0, 0, 0, 1]
    assert column(stated, "shared", "shape") == [1, 1, 1, 1]
    assert column(stated, "partial", "size") == [1, 1, 0, 0]
    assert column(stated, "specific", "place") == [0, 1, 0, 0]
    rest = caption_facts(part, stated=False)
    assert column(rest, "unstated", f"{UNSTATED}size") == [0, 0, 1, 0]
    assert column(rest, "unstated", f"{UNSTATED}place") == [1, 0, 1, 0]
    # what no caption states is not asked of a caption at all
    assert column(rest, "unstated", f"{UNSTATED}light") == [0, 0, 0, 0]


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


def test_image_words_by_hand():
    found = image_words(told(None, [], captions=CAPTIONS), ["dog"])
    assert found.keys == ("dog (all captions)", "dog (several captions)", "dog (one caption)")
    assert found.values[:, 0].tolist() == ["yes", None, None, "no", "yes"]
    assert found.values[:, 1].tolist() == [None, None, "yes", "no", None]
    assert found.values[:, 2].tolist() == [None, "yes", None, "no", None]
    assert found.groups["shared"].sum(axis=0).tolist() == [3, 0, 0]
    assert found.groups["specific"].sum(axis=0).tolist() == [0, 0, 2]


def test_caption_words_by_hand():
    found = caption_words(told(None, [], captions=CAPTIONS[:2]), ["dog", "ball"])
    assert found.values[:, 0].tolist() == ["yes", "yes", "yes", "yes", "no", "no"]
    assert found.values[:, 1].tolist() == ["no", "no", "no", "yes", "no", "no"]
    assert found.images.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.groups["words"].all()


def test_which_words_are_asked():
    n = 2 * LEAST_IMAGES + 10
    captions = [
        [
            "the everywhere "
            + ("dog " if image < LEAST_IMAGES else "")
            + ("ball " if image <= LEAST_IMAGES else ""),
            "rare" if image < LEAST_IMAGES - 1 else "with dogs",
        ]
        for image in range(n)
    ]
    found = content_words(told(None, [], captions=captions))
    # "dogs" and "everywhere" are in too many images, "rare" in too few, "the" and "with" say nothing
    assert found == ("ball", "dog")
    assert content_words(told(None, [], captions=captions), most=1) == ("ball",)
    assert {"the", "with"} <= FUNCTION_WORDS


def shares(found, questions):
    """Held of each question."""
    there = constant_bits(questions, questions.parts["test"].labels)
    share: np.ndarray = 1 - found.bits.sum(axis=0) / there.sum(axis=0)
    return share


def test_planted_facts_are_held_and_others_are_not():
    for name, least in [("linear", 0.99), ("mlp", 0.9)]:
        for n_classes in [2, 12]:
            rows, questions = planted(60 * n_classes, n_classes)
            found = probe(name, rows, questions)
            held = shares(found, questions)
            assert (held[:2] > least).all()
            # neither many classes nor few make something of nothing
            assert (np.abs(held[2:]) < 0.03).all()
            assert (found.right[:, :2].mean(axis=0) > 0.97).all()
            assert (found.settings[:2] > 0).all()


def test_the_perceptron_finds_what_is_not_linear():
    """Whether two facts agree is in the rows, and no linear function of them."""
    rows, questions = planted(600, 2, others=0)
    parts = [questions.parts[split] for split in ("train", "validation", "test")]
    same = [np.where(part.labels[:, :1] == part.labels[:, 1:2], "yes", "no").astype(object) for part in parts]
    agree = questions_of(*(Answers(("agree",), one, {}, np.arange(len(one))) for one in same))
    linear, mlp = (shares(probe(name, rows, agree), agree)[0] for name in ("linear", "mlp"))
    assert linear < 0.05
    assert mlp > 0.6


def test_controls_are_right_by_chance_alone():
    rows, questions = planted(300, 5)
    for name in ("linear", "mlp"):
        found = probe(name, rows, questions)
        assert (found.control_right.mean(axis=0) < 0.35).all()
        assert (found.right[:, :2].mean(axis=0) - found.control_right[:, :2].mean(axis=0) > 0.6).all()
        # it does learn some of its training answers
        assert (found.by_heart[:2] > 0.3).all()


def test_the_same_seed_gives_the_same_and_company_changes_nothing():
    rows, questions = planted(80, 3)
    alone = questions.subset(np.array([1]), np.arange(80))
    for name in ("linear", "mlp"):
        first, again = (probe(name, rows, questions, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first.bits, again.bits)
        single = probe(name, rows, alone, seed=3)
        np.testing.assert_allclose(single.bits[:, 0], first.bits[:, 1], atol=5e-3)
    other = probe("mlp", rows, questions, seed=4)
    assert (other.bits != first.bits).any()


def test_constant_prediction_by_hand():
    def column(values):
        return Answers(("k",), np.array(list(values), dtype=object)[:, None], {}, np.arange(len(values)))

    questions = questions_of(column("aaab"), column("aaabaaab"), column("ab"))
    # (3 + 1) / 6 and (1 + 1) / 6: of the smoothings, 1 is nearest to what validation rows have
    np.testing.assert_allclose(constant_frequencies(questions)[0], [4 / 6, 2 / 6])
    np.testing.assert_allclose(
        constant_bits(questions, questions.parts["test"].labels)[:, 0], [-np.log2(4 / 6), -np.log2(2 / 6)]
    )
    assert majority(questions).tolist() == [0]
    # few training rows that are not like the others are not trusted
    lopsided = questions_of(column("aaab"), column("ab" * 50), column("ab"))
    np.testing.assert_allclose(constant_frequencies(lopsided)[0], [0.5, 0.5], atol=0.01)


def test_what_is_refused():
    rows, questions = planted(50, 2)
    refused(UnknownNameError, "mlp", probe, "tree", rows, questions)


def data(n_classes, n=240, width=7, seed=0):
    """Rows and labels of four questions that depend on them, a fifth of them not asked."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, width))
    labels = np.stack(
        [
            (rows @ random.normal(size=(width, n_classes)) + random.gumbel(size=(n, n_classes))).argmax(
                axis=1
            )
            for _ in range(4)
        ],
        axis=1,
    )
    labels[random.random(labels.shape) < 0.2] = -1
    return torch.from_numpy(rows).float(), torch.from_numpy(labels)


def test_agrees_with_scikit_learn():
    for n_classes in [2, 5]:
        for penalty in [0.3, 0.01, 0.0005]:
            rows, labels = data(n_classes)
            probes = Regressions((), (n_classes,) * 4, rows.shape[1])
            rows, probes.weights = (
                rows.double(),
                probes.weights.double(),
            )  # so that rounding does not stop it early
            probes.minimise(rows, labels, torch.full((4,), penalty), flat=1e-6)
            found = probes.log_probabilities(rows).exp().numpy()
            for question in range(4):
                asked = labels[:, question] >= 0
                # scikit-learn's two-class form has one weight vector, on which our penalty weighs half
                weight = (2 if n_classes == 2 else 1) / (penalty * int(asked.sum()))
                theirs = LogisticRegression(C=weight, tol=1e-8, max_iter=10_000)
                theirs.fit(rows[asked].numpy(), labels[asked, question].numpy())
                np.testing.assert_allclose(found[:, question], theirs.predict_proba(rows.numpy()), atol=1e-4)


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
