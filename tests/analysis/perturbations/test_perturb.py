"""What holds of every text perturbation there is, whatever a caption may be."""

from __future__ import annotations

import json
from dataclasses import replace

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
from diptych.analysis.perturbations.perturb import SAME, CaptionList, PerturbOptions, perturb_list
from diptych.core.errors import DataError, DiptychError, UnknownNameError, UsageError
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


def check(name, texts, **given):
    """Every caption is another text, or the same and counted with a reason."""
    outcome = by_name(name, texts, **given)
    assert all(type(text) is str for text in outcome.texts), name
    different = [text != before for text, before in zip(outcome.texts, texts, strict=True)]
    assert different == outcome.changed.tolist(), name
    assert sum(outcome.reasons.values()) == len(texts) - outcome.n_changed, name
    assert all(reason.strip() == reason and reason for reason in outcome.reasons), name
    return outcome


@settings(max_examples=25)
@given(texts=st.lists(captions, max_size=4), seed=st.integers(-(2**70), 2**70))
def test_any_captions_survive(texts, seed):
    for name in TEXTS:
        check(name, texts, seed=seed)


@pytest.mark.parametrize("name", TEXTS)
def test_every_perturbation(name):
    """Awkward captions survive, also as published; only seed and id decide; needs and options are checked."""
    kind, texts = TEXTS[name], SENTENCES * 6
    check(name, [*AWKWARD.values()])
    ids = [str(row) for row in range(len(texts))]
    found = by_name(name, texts)
    assert found.n_changed
    assert by_name(name, texts).texts == found.texts
    order = np.random.default_rng(1).permutation(len(texts)).tolist()
    shuffled = by_name(name, [texts[row] for row in order], [ids[row] for row in order])
    assert shuffled.texts == [found.texts[row] for row in order]
    for row in (0, 7, 35):
        assert by_name(name, [texts[row]], [ids[row]]).texts == [found.texts[row]]
    tagger, wordnet = (part if what in kind.needs else None for what, part in
                       (("tags", LANGUAGE.tagger), ("wordnet", LANGUAGE.wordnet)))  # fmt: skip
    have = Language("as declared", tagger, wordnet)
    assert perturb_captions(kind, SENTENCES, ids[:6], language=have).texts == by_name(name, SENTENCES).texts
    if kind.needs:
        refused(UsageError, f"{name} needs a", perturb_captions, kind, SENTENCES, ids[:6])
    unknown = f"{name}: unknown key 'no such option'"
    refused(UsageError, unknown, by_name, name, ["a dog"], options={"no such option": 1})
    for option, field in kind.options.model_fields.items():
        assert kind.options(**{option: field.default}) == kind.options()
        refused(UsageError, f"{name}: ", by_name, name, ["a dog"], options={option: object()})
    if kind.published is not None:
        pytest.importorskip("nltk")
        assert check(name, [*AWKWARD.values()], compat="published", seed=42).compat == "published"


class Times(NoOptions):
    times: int = Field(1, ge=1)


def shout(caption, draws, options):
    if not caption.words:
        raise Unchanged("no word")
    place = draws.below(len(caption.words))
    return caption.replaced({place: caption.words[place].text.upper() * options.times})


def published_shout(caption, seed, options):
    return f"{caption.text}{seed}"


SHOUT = TextPerturbation(
    "shout", "a word in capitals", "typos", "this test", True, options=Times, apply=shout
)
BOTH = replace(SHOUT, name="both", published=published_shout)
CAPTIONS = ["a red dog", "A", "", "the cat, the dog"]
IDS = ["w", "x", "y", "z"]


class ByEnding:
    """Nouns are words in ``-g``; counts how often it is asked."""

    name, fingerprint = "by ending", "0"
    calls = 0

    def tag(self, sentences):
        self.calls += 1
        return [["NN" if word.endswith("g") else "DT" for word in words] for words in sentences]


def test_every_caption_is_changed_or_counted_and_the_published_form_is_a_choice():
    found = perturb_captions(SHOUT, CAPTIONS, IDS, seed=3)
    assert found.changed.tolist() == [True, False, False, True]
    assert found.texts[1:3] == CAPTIONS[1:3]
    assert found.texts[0].lower() == CAPTIONS[0]
    assert found.reasons == {SAME: 1, "no word": 1}
    assert (found.seed, found.compat, found.options) == (3, "none", {"times": 1})
    for seed, text in ((None, "a red dog42"), (1, "a red dog1")):
        found = perturb_captions(BOTH, CAPTIONS[:1], IDS[:1], compat="published", seed=seed)
        assert (found.texts, found.compat) == ([text], "published")
    for error, message, ids, options in (
        (UsageError, "shout has no published form", IDS, {"compat": "published"}),
        (UsageError, "compat is 'thesis'", IDS, {"compat": "thesis"}),
        (DataError, "4 captions, 3 ids", IDS[:3], {}),
        (DataError, "4 captions, 4 ids and 1 tagged", IDS, {"tags": [["DT"]]}),
    ):
        refused(error, message, perturb_captions, SHOUT, CAPTIONS, ids, **options)
    with pytest.raises(UnknownNameError, match="unknown group of perturbations 'typo'"):
        replace(SHOUT, group="typo")
    for caption, name, message in (
        (Caption("a"), "tags", "without tags"),
        (Caption("a dog", "x", tags=["DT"]), "tags", "caption 'x' has 2 words and 1 tags: 'a dog'"),
        (Caption("a dog", "x", tags=["DT"] * 3), "tags", "caption 'x' has 2 words and 3 tags: 'a dog'"),
        (Caption("a"), "language", "without a language"),
    ):
        refused(DiptychError, message, getattr, caption, name)


def test_one_caption_by_a_name(tmp_path, monkeypatch):
    text, name = "Two small dogs run across wet grass", "character-swap"
    assert perturb_caption(text, name, compat="published") == "Two small dogs run across wet grsas"
    for id, seed, edits in (("", 0, 1), ("x", 0, 1), ("x", 7, 3)):
        options = {"edits": edits}
        expected = perturbed(name, text, ids=[id], seed=seed, options=options).texts[0]
        assert perturb_caption(text, name, id=id, seed=seed, options=options) == expected
    assert perturb_caption("🎉", name) == "🎉"
    refused(UnknownNameError, "did you mean 'character-swap'", perturb_caption, text, "char-swap")
    refused(UsageError, "blur changes images", perturb_caption, text, "blur")
    pytest.importorskip("nltk")
    assert perturb_caption("a dog, a pig", _NOUNS, language=Language("t", ByEnding())) == "a pig, a dog"
    monkeypatch.setenv("NLTK_DATA", str(write_tagger(tmp_path / "data")))
    assert perturb_caption("the dog, the cat", _NOUNS) == "the cat, the dog"


def test_perturbations_are_chosen_by_name_group_and_set():
    every = [one.name for one in choose_perturbations(["all"])]
    assert every == [one.name for one in choose_perturbations(reversed(PERTURBATIONS.names()))]
    groups = [one.group for one in choose_perturbations(["all"])]
    assert groups == sorted(groups, key=list(GROUPS).index)
    assert {one.direction for one in choose_perturbations(["text"])} == {"t2i"}
    assert [one.name for one in choose_perturbations(["typos", "typos"])] == [
        one.name for one in PERTURBATIONS if one.group == "typos"
    ]
    refused(UnknownNameError, "unknown perturbation 'typo'", choose_perturbations, ["typo"])
    refused(UsageError, "no perturbation was requested", choose_perturbations, [])


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
    for options, language, message in (
        ({"perturb": ["typing-errors"], "compat": "published"}, None, "typing-errors has no published form"),
        (
            {"perturb": ["typos"], "set_": ["negation.edits=2"]},
            None,
            "options of negation, which was not requested",
        ),
        ({"perturb": ["typos"], "set_": ["typing-errors.rate=2"]}, None, "rate"),
        ({"perturb": [_NOUNS]}, None, "needs a part-of-speech tagger"),
        ({"perturb": ["thesis"]}, Language("t", ByEnding()), "synonym-adjective needs a WordNet"),
    ):
        refused(UsageError, message, perturb_list, PETS, PerturbOptions(**options), language)


def test_captions_of_lines(tmp_path):
    file = tmp_path / "pets.txt"
    for content, expected in (
        (b"", []),
        (b"\n", [""]),
        (b"\na dog\n\n", ["", "a dog", ""]),
        (b"a dog\n\ncat", ["a dog", "", "cat"]),
        (b"\xef\xbb\xbfa dog\r\ncat\r\n", ["a dog", "cat"]),
        ("a\u2028b\n".encode(), ["a\u2028b"]),
    ):
        file.write_bytes(content)
        read = CaptionList.of_lines(file)
        assert list(read.captions) == expected
        assert list(read.ids) == [str(number) for number in range(1, len(expected) + 1)]
        assert (read.name, read.images) == ("pets", None)
    file.write_bytes(b"caf\xe9 au lait")
    refused(DataError, "is not UTF-8 text", CaptionList.of_lines, file)
    refused(DataError, "no.txt does not exist", CaptionList.of_lines, tmp_path / "no.txt")
