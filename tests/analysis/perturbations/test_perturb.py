"""What holds of every text perturbation there is, whatever a caption may be."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from everyday_language import everyday
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbing import perturbed
from pydantic import Field
from refusals import refused
from tiny_tagger import write_tagger

from diptych.analysis.perturbations import (
    GROUPS,
    PERTURBATIONS,
    Caption,
    NoOptions,
    TextPerturbation,
    Unchanged,
    choose_perturbations,
    perturb_caption,
    perturb_captions,
)
from diptych.analysis.perturbations.perturb import (
    SAME,
    CaptionList,
    PerturbOptions,
    perturb_list,
)
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.data.language import Language

LANGUAGE = everyday()
TEXTS = {one.name: one for one in choose_perturbations(["text"]) if isinstance(one, TextPerturbation)}
AWKWARD = {
    "empty": "",
    "one word": "dog",
    "one letter": "a",
    "blanks": " \t\n  ",
    "emoji": "a red 🐕‍🦺 and 👩🏽‍🚒 🎉🎉",
    "emoji only": "🎉🐶",
    "Arabic": "كلب بني يركض على العشب الأخضر.",
    "Hebrew": "כֶּלֶב חוּם רָץ עַל הַדֶּשֶׁא",
    "right to left with marks": "\u202ea red dog\u202c",
    "Devanagari": "एक भूरा कुत्ता हरी घास पर दौड़ रहा है।",
    "Chinese": "一只棕色的狗在绿色的草地上奔跑。",
    "Hangul in parts": "\u1112\u1161\u11ab\u1100\u1173\u11af \u1100\u1161\u11bc",
    "digits": "12345 678 9",
    "marks": "?!… — ' ’ - . ,",
    "control characters": "a\x01 red\x7f\x1b[31m dog\u200b\ufeff",
    "NUL": "a red\x00dog\x00",
    "a long word": "a red " + "do" * 5000 + "g",
    "capitals": "A RED DOG IS RUNNING IN TWO STREETS",
    "accents apart": "un chien re\u0301el a\u0300 Paris",
    "case that grows": "İstanbul STRASSE straße ﬁsh ŉ",
    "lone surrogate": "a red \ud800 dog",
    "apostrophes": "the man's dog isn't a dog ' s",
    "underscores": "_ __ red_dog _dog_",
    "fullwidth digits": "２ dogs and ³ cats",
    "many words": "a red dog with two large balls in the street and " * 455,
    "many words without blanks": "a,red,dog," * 1667,
}
SENTENCES = [
    "Two small dogs run through the green grass.",
    "A man in a red hat is holding a blue ball.",
    "a happy woman sitting at an old wooden table with a large orchid",
    "Several children are running between plants.",
    "There is a hot dog on the table.",
    "a red ball, a blue hat and a black dog",
]

LISTED = "a an the red blue small two dog dogs men is runs in and hat , . ! 🎉 кот 7"
words = st.sampled_from(LISTED.split())
captions = st.one_of(st.text(max_size=40), st.lists(words, max_size=12).map(" ".join))


def by_name(name, texts, ids=None, seed=0, **given):
    ids = ids if ids is not None else [str(row) for row in range(len(texts))]
    return perturb_captions(TEXTS[name], texts, ids, seed=seed, language=LANGUAGE, **given)


def check(outcome, texts):
    """Every caption is another text, or the same and counted with a reason."""
    assert all(type(text) is str for text in outcome.texts)
    assert [
        text != before for text, before in zip(outcome.texts, texts, strict=True)
    ] == outcome.changed.tolist()
    assert sum(outcome.reasons.values()) == len(texts) - outcome.n_changed
    assert all(reason.strip() == reason and reason for reason in outcome.reasons)


def test_awkward_captions_survive():
    for name in TEXTS:
        texts = [*AWKWARD.values()]
        check(by_name(name, texts), texts)
        check(by_name(name, texts, seed=1), texts)


@settings(max_examples=25)
@given(texts=st.lists(captions, max_size=4), seed=st.integers(-(2**70), 2**70))
def test_any_captions_survive(texts, seed):
    for name in TEXTS:
        check(by_name(name, texts, seed=seed), texts)


def test_awkward_captions_survive_the_published_form():
    for name in [one.name for one in TEXTS.values() if one.published is not None]:
        pytest.importorskip("nltk")
        texts = [*AWKWARD.values()]
        outcome = by_name(name, texts, compat="published", seed=42)
        check(outcome, texts)
        assert by_name(name, texts, compat="published", seed=42).texts == outcome.texts
        assert outcome.compat == "published"


@cache
def of_sentences(name, seed):
    return tuple(by_name(name, SENTENCES * 6, seed=seed).texts)


def test_the_seed_and_the_id_decide_and_nothing_else():
    for name in TEXTS:
        texts = SENTENCES * 6
        ids = [str(row) for row in range(len(texts))]
        whole = list(of_sentences(name, 0))
        assert by_name(name, texts).texts == whole
        order = np.random.default_rng(1).permutation(len(texts)).tolist()
        shuffled = by_name(name, [texts[row] for row in order], [ids[row] for row in order])
        assert shuffled.texts == [whole[row] for row in order]
        for row in (0, 7, 35):
            assert by_name(name, [texts[row]], [ids[row]]).texts == [whole[row]]


def test_something_is_changed_and_what_is_needed_is_declared():
    for name in TEXTS:
        kind = TEXTS[name]
        assert by_name(name, SENTENCES * 6).n_changed
        have = Language(
            "as declared",
            LANGUAGE.tagger if "tags" in kind.needs else None,
            LANGUAGE.wordnet if "wordnet" in kind.needs else None,
        )
        ids = [str(row) for row in range(len(SENTENCES))]
        assert perturb_captions(kind, SENTENCES, ids, language=have).texts == by_name(name, SENTENCES).texts
        if kind.needs:
            refused(UsageError, f"{name} needs a", perturb_captions, kind, SENTENCES, ids)


def test_options_are_checked():
    for name in TEXTS:
        with pytest.raises(UsageError, match=f"{name}: unknown key 'no such option'"):
            by_name(name, ["a dog"], options={"no such option": 1})
        for option, field in TEXTS[name].options.model_fields.items():
            assert TEXTS[name].options(**{option: field.default}) == TEXTS[name].options()
            refused(UsageError, f"{name}: ", by_name, name, ["a dog"], options={option: object()})


class Times(NoOptions):
    times: int = Field(1, ge=1)


def shout(caption, draws, options):
    if not caption.words:
        raise Unchanged("no word")
    place = draws.below(len(caption.words))
    return caption.replaced({place: caption.words[place].text.upper() * options.times})


SHOUT = TextPerturbation(
    name="shout",
    description="a word in capitals",
    group="typos",
    source="this test",
    keeps_meaning=True,
    options=Times,
    apply=shout,
)

CAPTIONS = ["a red dog", "A", "", "the cat, the dog"]
IDS = ["w", "x", "y", "z"]


class ByEnding:
    """Nouns are words in ``-g``; counts how often it is asked."""

    name, fingerprint = "by ending", "0"
    calls = 0

    def tag(self, sentences):
        self.calls += 1
        return [["NN" if word.endswith("g") else "DT" for word in words] for words in sentences]


def test_every_caption_is_changed_or_counted():
    found = perturb_captions(SHOUT, CAPTIONS, IDS, seed=3)
    assert found.changed.tolist() == [True, False, False, True]
    assert found.texts[1:3] == CAPTIONS[1:3]
    assert found.texts[0].lower() == CAPTIONS[0]
    assert found.reasons == {SAME: 1, "no word": 1}
    assert (found.seed, found.compat, found.options) == (3, "none", {"times": 1})


def test_the_published_form_is_a_choice():
    def published(caption, seed, options):
        return f"{caption.text}{seed}"

    both = TextPerturbation("both", "", "typos", "", True, apply=shout, published=published)
    assert perturb_captions(both, CAPTIONS[:1], IDS[:1], compat="published").texts == ["a red dog42"]
    found = perturb_captions(both, CAPTIONS[:1], IDS[:1], compat="published", seed=1)
    assert (found.texts, found.compat) == (["a red dog1"], "published")
    with pytest.raises(UsageError, match="shout has no published form"):
        perturb_captions(SHOUT, CAPTIONS, IDS, compat="published")
    refused(UsageError, "compat is 'thesis'", perturb_captions, SHOUT, CAPTIONS, IDS, compat="thesis")


def test_what_does_not_fit_together_is_said():
    refused(DataError, "4 captions, 3 ids", perturb_captions, SHOUT, CAPTIONS, IDS[:3])
    with pytest.raises(DataError, match="4 captions, 4 ids and 1 tagged"):
        perturb_captions(SHOUT, CAPTIONS, IDS, tags=[["DT"]])
    with pytest.raises(UnknownNameError, match="unknown group of perturbations 'typo'"):
        TextPerturbation("x", "", "typo", "", True, apply=shout)


def test_perturbations_are_chosen_by_name_group_and_set():
    every = [one.name for one in choose_perturbations(["all"])]
    assert every == [one.name for one in choose_perturbations(reversed(PERTURBATIONS.names()))]
    groups = [one.group for one in choose_perturbations(["all"])]
    assert groups == sorted(groups, key=list(GROUPS).index)
    assert {one.side for one in choose_perturbations(["text"])} == {"text"}
    assert [one.name for one in choose_perturbations(["typos", "typos"])] == [
        one.name for one in PERTURBATIONS if one.group == "typos"
    ]
    refused(UnknownNameError, "unknown perturbation 'typo'", choose_perturbations, ["typo"])
    refused(UsageError, "no perturbation was requested", choose_perturbations, [])


def test_one_caption_by_a_name():
    text = "Two small dogs run across wet grass"
    expected = "Two small dogs run across wet grsas"
    assert perturb_caption(text, "character-swap", compat="published") == expected
    for id, seed, edits in (("", 0, 1), ("x", 0, 1), ("x", 7, 3)):
        options = {"edits": edits}
        expected = perturbed("character-swap", text, ids=[id], seed=seed, options=options).texts[0]
        assert perturb_caption(text, "character-swap", id=id, seed=seed, options=options) == expected
    assert perturb_caption("🎉", "character-swap") == "🎉"
    refused(UnknownNameError, "did you mean 'character-swap'", perturb_caption, text, "char-swap")
    refused(UsageError, "blur changes images", perturb_caption, text, "blur")


PETS = CaptionList("pets", ["a dog and a pig", "🎉", "שלום עולם"], ["x", "y", "z"], ["p", "p", "q"])
_NOUNS, _OTHERS = "shuffle-nouns-and-adjectives", "shuffle-all-but-nouns-and-adjectives"


def test_files_say_what_became_of_every_caption(tmp_path):
    tagger, out = ByEnding(), tmp_path / "out"
    options = PerturbOptions(
        perturb=[_NOUNS, f"character-swap, {_OTHERS}"], set_=["character-swap.edits=2"], seeds=2, out=out
    )
    _, files = perturb_list(PETS, options, Language("t", tagger), "test")
    assert tagger.calls == 1
    names = ("character-swap", _OTHERS, _NOUNS)
    assert [file.name for file in files] == [f"{name}-{seed}.jsonl" for name in names for seed in (0, 1)]
    nouns = [json.loads(line) for line in files[4].read_text(encoding="utf-8").splitlines()]
    assert [list(one.values()) for one in nouns] == [
        ["x", "p", "a dog and a pig", "a pig and a dog", True],
        ["y", "p", "🎉", "🎉", False],
        ["z", "q", "שלום עולם", "שלום עולם", False],
    ]
    assert {tuple(one) for one in nouns} == {("id", "image", "caption", "perturbed", "changed")}
    swapped = perturbed(names[0], *PETS.captions, ids=PETS.ids, seed=1, options={"edits": 2})
    written = [json.loads(line)["perturbed"] for line in files[1].read_text(encoding="utf-8").splitlines()]
    assert written == swapped.texts
    summary = json.loads((out / "perturbations.json").read_text(encoding="utf-8"))
    assert (summary["captions of"], summary["captions"], summary["split"]) == ("pets", 3, "test")
    first, *_, last = summary["perturbations"]
    assert (first["file"], first["options"]) == ("character-swap-0.jsonl", {"edits": 2})
    assert (last["changed"], last["unchanged"]) == (1, {"no two different nouns or adjectives": 2})


def test_what_cannot_be_is_said_before_anything_is_done():
    for given, message in [
        ({"perturb": ["typing-errors"], "compat": "published"}, "typing-errors has no published form"),
        (
            {"perturb": ["typos"], "set_": ["negation.edits=2"]},
            "options of negation, which was not asked for",
        ),
        ({"perturb": ["typos"], "set_": ["typing-errors.rate=2"]}, "rate"),
        ({"perturb": [_NOUNS]}, "needs a part-of-speech tagger"),
        ({"perturb": ["thesis"]}, "synonym-adjective needs a WordNet"),
    ]:
        language = Language("t", ByEnding()) if given["perturb"] == ["thesis"] else None
        refused(UsageError, message, perturb_list, PETS, PerturbOptions(**given), language)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\na dog\n\n", ["", "a dog", ""]),
        (b"a dog\n\ncat", ["a dog", "", "cat"]),
        (b"\xef\xbb\xbfa dog\r\ncat\r\n", ["a dog", "cat"]),
        ("a\u2028b\n".encode(), ["a\u2028b"]),
    ],
)
def test_captions_of_lines(tmp_path, content, expected):
    file = tmp_path / "pets.txt"
    file.write_bytes(content)
    read = CaptionList.of_lines(file)
    assert list(read.captions) == expected
    assert list(read.ids) == [str(number) for number in range(1, len(expected) + 1)]
    assert (read.name, read.images) == ("pets", None)


def test_lines_that_cannot_be_read(tmp_path):
    refused(DataError, "no.txt does not exist", CaptionList.of_lines, tmp_path / "no.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 au lait")
    refused(DataError, "is not UTF-8 text", CaptionList.of_lines, tmp_path / "latin.txt")


def test_what_is_not_declared_is_not_there():
    with pytest.raises(UsageError, match="without tags"):
        _ = Caption("a").tags
    for tags in (["DT"], ["DT"] * 3):
        with pytest.raises(DataError, match=rf"caption 'x' has 2 words and {len(tags)} tags: 'a dog'"):
            _ = Caption("a dog", "x", tags=tags).tags
    with pytest.raises(UsageError, match="without a language"):
        _ = Caption("a").language


def test_one_caption_takes_the_language_that_is_given_or_found(tmp_path, monkeypatch):
    pytest.importorskip("nltk")
    name = "shuffle-nouns-and-adjectives"
    assert perturb_caption("a dog, a pig", name, language=Language("t", ByEnding())) == "a pig, a dog"
    monkeypatch.setenv("NLTK_DATA", str(write_tagger(tmp_path / "data")))
    assert perturb_caption("the dog, the cat", name) == "the cat, the dog"
