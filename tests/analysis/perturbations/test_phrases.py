from __future__ import annotations

import pytest

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.phrases import finite_verbs, mended_tags, noun_phrases


def caption(tagged: str) -> Caption:
    """Of ``word/TAG word/TAG``."""
    pairs = [token.rsplit("/", 1) for token in tagged.split()]
    return Caption(" ".join(word for word, _ in pairs), tags=[tag for _, tag in pairs])


def phrases(tagged: str) -> list[str]:
    given = caption(tagged)
    return [
        " ".join(word.text for word in given.words[phrase.start : phrase.head + 1]) + "+" * phrase.plural
        for phrase in noun_phrases(given, given.tags)
    ]


@pytest.mark.parametrize(
    ("tagged", "verb"),
    [
        ("A/DT dog/NN jumps/NNS in/IN", 2),
        ("a/DT man/NN watches/NNS dogs/NNS", 2),
        ("the/DT dog/NN barks/NNS down/RP", 2),
        ("the/DT dog/NN sits/NNS in/IN", 2),
        ("dog/NN playing/NN in/IN", 1),
    ],
)
def test_verbs_that_were_taken_for_nouns_are_verbs(tagged: str, verb: int) -> None:
    given = caption(tagged)
    mended = mended_tags(given)
    assert mended[verb] in ("VBZ", "VBG")
    assert mended[:verb] + mended[verb + 1 :] == [*given.tags[:verb], *given.tags[verb + 1 :]]


@pytest.mark.parametrize(
    "tagged",
    [
        "a/DT sports/NNS car/NN",
        "a/DT water/NN sports/NNS event/NN",
        "two/CD baseball/NN players/NNS in/IN",
        "the/DT street/NN signs/NNS at/IN",
        "a/DT brick/NN building/NN in/IN",
        "swimming/NN pool/NN",
        "an/DT orange/NN goggles/NNS in/IN",
        "a/DT pair/NN of/IN shoes/NNS",
        "",
    ],
)
def test_nouns_stay_nouns(tagged: str) -> None:
    given = caption(tagged)
    assert mended_tags(given) == list(given.tags)


def test_a_colour_before_and_is_an_adjective() -> None:
    assert mended_tags(caption("an/DT orange/NN and/CC white/JJ cat/NN"))[1] == "JJ"


@pytest.mark.parametrize(
    ("tagged", "found"),
    [
        (
            "A/DT black/JJ and/CC white/JJ dog/NN with/IN two/CD balls/NNS",
            ["A black and white dog", "two balls+"],
        ),
        ("a/DT swimming/VBG pool/NN", ["a swimming pool"]),
        ("man/NN riding/VBG bikes/NNS", ["man", "bikes+"]),
        ("his/PRP$ big/JJ dog/NN runs/VBZ", ["his big dog"]),
        ("three/CD men/NN", ["three men+"]),
        ("red/JJ blue/JJ running/VBG", []),
        ("the/DT a/DT dog/NN", ["a dog"]),
        ("", []),
    ],
)
def test_noun_phrases(tagged: str, found: list[str]) -> None:
    assert phrases(tagged) == found


def test_marks_end_a_phrase_but_commas_do_not() -> None:
    tags = ["DT", "JJ", "JJ", "NN", "NN"]
    given = Caption("a big, red dog. cat", tags=tags)
    assert [(phrase.start, phrase.head) for phrase in noun_phrases(given, tags)] == [(0, 3), (4, 4)]


def test_a_form_for_several_needs_something_of_which_there_are_several() -> None:
    given = caption("a/DT cake/VBP feeds/VBZ dogs/NNS who/WP run/VBP and/CC was/VBD")
    assert finite_verbs(given, given.tags) == [2, 5, 7]


def test_five_thousand_adjectives_are_read_in_one_pass() -> None:
    given = Caption("red " * 5000, tags=["JJ"] * 5000)
    calls = 0

    class Counted(list[str]):
        def __getitem__(self, place):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            return super().__getitem__(place)

    assert list(noun_phrases(given, Counted(given.tags))) == []
    assert calls < 50_000
