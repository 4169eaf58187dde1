"""Captions, declarations and the engine, with perturbations made for the tests alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field
from tiny_tagger import write_tagger

from diptych.analysis.perturbations import (
    GROUPS,
    PERTURBATIONS,
    Caption,
    TextPerturbation,
    Unchanged,
    choose_perturbations,
    perturb_caption,
    perturb_captions,
)
from diptych.analysis.perturbations.perturb import SAME
from diptych.core.draws import Draws
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.data.language import Language


class Times(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    times: int = Field(1, ge=1)


def shout(caption: Caption, draws: Draws, options: Times) -> str:
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
    name, fingerprint = "by ending", "0"

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [["NN" if word.endswith("g") else "DT" for word in words] for words in sentences]


def test_a_caption_s_words_are_replaced_and_reordered_where_they_stand() -> None:
    caption = Caption("The cat, the  dog!", tags=["DT", "NN", "DT", "NN"])
    assert caption.replaced({}) == caption.text
    assert caption.replaced({3: "ox", 0: "An"}) == "An cat, the  ox!"
    assert caption.reordered([1, 3], [3, 1]) == "The dog, the  cat!"
    assert caption.nouns == [1, 3]
    assert caption.adjectives == []


def test_what_is_not_declared_is_not_there() -> None:
    with pytest.raises(UsageError, match="without tags"):
        _ = Caption("a").tags
    for tags in (["DT"], ["DT"] * 3):
        with pytest.raises(DataError, match=rf"caption 'x' has 2 words and {len(tags)} tags: 'a dog'"):
            _ = Caption("a dog", "x", tags=tags).tags
    with pytest.raises(UsageError, match="without a language"):
        _ = Caption("a").language


def test_every_caption_is_changed_or_counted() -> None:
    found = perturb_captions(SHOUT, CAPTIONS, IDS, seed=3)
    assert found.changed.tolist() == [True, False, False, True]
    assert found.texts[1:3] == CAPTIONS[1:3]
    assert found.texts[0].lower() == CAPTIONS[0]
    assert found.reasons == {SAME: 1, "no word": 1}
    assert found.line() == f"shout: 2 of 4 captions changed ({SAME} 1; no word 1)"
    assert (found.seed, found.compat, found.options) == (3, "none", {"times": 1})


def test_a_caption_s_change_is_of_its_seed_and_id_alone() -> None:
    captions = ["one two three four five six"] * 40
    ids = [str(number) for number in range(40)]
    all_at_once = perturb_captions(SHOUT, captions, ids).texts
    assert perturb_captions(SHOUT, captions[::-1], ids[::-1]).texts == all_at_once[::-1]
    assert [perturb_captions(SHOUT, captions[:1], [id]).texts[0] for id in ids] == all_at_once
    assert len(set(all_at_once)) == 6
    assert perturb_captions(SHOUT, captions, ids, seed=1).texts != all_at_once


def test_tags_are_asked_of_the_language_where_they_are_needed() -> None:
    def capital_nouns(caption: Caption, draws: Draws, options: object) -> str:
        return caption.replaced({place: caption.words[place].text.title() for place in caption.nouns})

    tagged = TextPerturbation(
        "capital", "", "typos", "", True, apply=capital_nouns, needs=frozenset({"tags"})
    )
    language = Language("test", ByEnding())
    assert perturb_captions(tagged, CAPTIONS, IDS, language=language).texts == [
        "a red Dog",
        "A",
        "",
        "the cat, the Dog",
    ]
    given = [["NN", "DT", "DT"], ["DT"], [], ["DT"] * 4]
    assert perturb_captions(tagged, CAPTIONS, IDS, tags=given).texts[0] == "A red dog"
    with pytest.raises(UsageError, match="capital needs a part-of-speech tagger"):
        perturb_captions(tagged, CAPTIONS, IDS)


def test_the_published_form_is_a_choice() -> None:
    def published(caption: Caption, seed: int, options: Times) -> str:
        return f"{caption.text}{seed}"

    both = TextPerturbation("both", "", "typos", "", True, apply=shout, published=published)
    assert perturb_captions(both, CAPTIONS[:1], IDS[:1], compat="published").texts == ["a red dog42"]
    found = perturb_captions(both, CAPTIONS[:1], IDS[:1], compat="published", seed=1)
    assert (found.texts, found.compat) == (["a red dog1"], "published")
    with pytest.raises(UsageError, match="shout has no published form"):
        perturb_captions(SHOUT, CAPTIONS, IDS, compat="published")
    with pytest.raises(UsageError, match="compat is 'thesis'"):
        perturb_captions(SHOUT, CAPTIONS, IDS, compat="thesis")


@pytest.mark.parametrize("options", [{"time": 2}, {"times": 0}, {"times": "many"}])
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"shout: option 'times?'"):
        perturb_captions(SHOUT, CAPTIONS, IDS, options=options)
    assert perturb_captions(SHOUT, ["a"], ["x"], options={"times": 2}).texts == ["AA"]


def test_what_does_not_fit_together_is_said() -> None:
    with pytest.raises(DataError, match="4 captions, 3 ids"):
        perturb_captions(SHOUT, CAPTIONS, IDS[:3])
    with pytest.raises(DataError, match="4 captions, 4 ids and 1 tagged"):
        perturb_captions(SHOUT, CAPTIONS, IDS, tags=[["DT"]])
    with pytest.raises(UnknownNameError, match="unknown group of perturbations 'typo'"):
        TextPerturbation("x", "", "typo", "", True, apply=shout)


def test_perturbations_are_chosen_by_name_group_and_set() -> None:
    every = [one.name for one in choose_perturbations(["all"])]
    assert every == [one.name for one in choose_perturbations(reversed(PERTURBATIONS.names()))]
    groups = [one.group for one in choose_perturbations(["all"])]
    assert groups == sorted(groups, key=list(GROUPS).index)
    assert {one.side for one in choose_perturbations(["text"])} == {"text"}
    assert [one.name for one in choose_perturbations(["typos", "typos"])] == [
        one.name for one in PERTURBATIONS if one.group == "typos"
    ]
    with pytest.raises(UnknownNameError, match="unknown perturbation 'typo'"):
        choose_perturbations(["typo"])
    with pytest.raises(UsageError, match="no perturbation was asked for"):
        choose_perturbations([])


def test_one_caption_by_a_name() -> None:
    text = "Two small dogs run across wet grass"
    assert (
        perturb_caption(text, "character-swap", compat="published") == "Two small dogs run across wet grsas"
    )
    swap = PERTURBATIONS.get("character-swap")
    assert isinstance(swap, TextPerturbation)
    for id, seed, edits in (("", 0, 1), ("x", 0, 1), ("x", 7, 3)):
        options = {"edits": edits}
        expected = perturb_captions(swap, [text], [id], seed=seed, options=options).texts[0]
        assert perturb_caption(text, "character-swap", id=id, seed=seed, options=options) == expected
    assert perturb_caption("🎉", "character-swap") == "🎉"
    with pytest.raises(UnknownNameError, match="did you mean 'character-swap'"):
        perturb_caption(text, "char-swap")
    with pytest.raises(UsageError, match="blur changes pictures"):
        perturb_caption(text, "blur")


def test_one_caption_takes_the_language_that_is_given_or_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nltk")
    name = "shuffle-nouns-and-adjectives"
    assert perturb_caption("a dog, a pig", name, language=Language("t", ByEnding())) == "a pig, a dog"
    monkeypatch.setenv("NLTK_DATA", str(write_tagger(tmp_path / "data")))
    assert perturb_caption("the dog, the cat", name) == "the cat, the dog"


def test_half_a_character_is_a_character() -> None:
    found = perturb_captions(SHOUT, ["a\ud800b"] * 2, ["\ud800", "\ud801"])
    assert {text.lower() for text in found.texts} == {"a\ud800b"}
