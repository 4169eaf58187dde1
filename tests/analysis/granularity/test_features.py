"""Every feature on sentences counted by hand, in both definitions, and on captions nobody expects."""

from __future__ import annotations

import pytest
from counted_language import counted, tagged
from everyday_language import DictWordNet
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.granularity import FEATURES
from diptych.analysis.granularity.features import Lexicon
from diptych.analysis.perturbations.caption import Caption
from diptych.data.language import Language

LANGUAGE = counted()
LEXICON = Lexicon(LANGUAGE)
LONG = "Three small dogs run in front of a tennis player and several boys, wearing red hats."


def value(name, text, compat="none"):
    caption = Caption(text, tags=tagged(text), language=LANGUAGE)
    return FEATURES.get(name).counted_by(compat)(caption, LEXICON)


@pytest.mark.parametrize(
    ("name", "text", "right", "published"),
    [
        ("adjectives", LONG, 3, 3),  # small, several, red
        ("adjectives", "the largest dog is larger", 2, 2),
        # "front of"; before "wearing" there is a comma
        ("complement-phrases", LONG, 1, 1),
        ("complement-phrases", "a man with a hat on the street sitting", 3, 3),
        ("complement-phrases", "boys wearing hats", 1, 1),
        ("complement-phrases", "on the street", 0, 0),
        ("articles", LONG, 1, 1),
        ("articles", "The dog and an orchid in this house", 2, 3),
        ("articles", "A dog, a cat", 2, 2),
        ("quantifiers", LONG, 2, 1),  # three, several
        ("quantifiers", "both dogs and a couple of cats and 2 boys", 3, 1),
        ("quantifiers", "a couple in love", 0, 0),
        # dogs 4, front 0, tennis player 4, boys 4, hats 0; a tennis alone is none
        ("concept-depth", LONG, 12 / 5, None),
        ("concept-depth", "poodle person", 7 / 2, 7 / 2),
        # dog is a canine, a frump and a verb: the greatest of 4, 0 and 0; red is an adjective at its root
        ("concept-depth", "red dogs", 4, 2),
        ("concept-depth", "dogs.", 4, None),
        ("characters", " a  dog ", 5, 8),
        ("characters", "a dog.", 6, 6),
        ("words", LONG, 16, 16),
        ("words", "a dog . ", 2, 4),
        ("words", "don't sit-in", 2, 2),
        ("concept-diversity", LONG, 7, None),
        ("concept-diversity", "dogs and a dog and red dogs", 2, 7 / 7),
        ("concept-diversity", "dogs dog", 1, 5 / 2),  # dog, domestic dog, Canis familiaris, frump, chase
        ("concept-diversity", "dogs dog ", 1, 5 / 3),
        ("concept-diversity", "a dog is red", 2, None),  # an auxiliary names no concept
        ("concept-diversity", "a hot dog", 1, None),
        ("concept-diversity", "a hot, dog", 2, None),
    ],
)
def test_counted_by_hand(name, text, right, published):
    assert value(name, text) == pytest.approx(right)
    if published is not None:
        assert value(name, text, "published") == pytest.approx(published)


class Looked(DictWordNet):
    """A WordNet whose forms NLTK looks up by fewer lemmas than there are."""

    def morphy(self, word, part):
        return {"boys": ["boys"], "players": []}.get(word, [word] if self.senses(word, part) else [])


def test_published_words_are_looked_up_as_nltk_does_it():
    members = {"boys.n": ["boys", "lads"], "boy.n": ["boy", "male child"], "player.n": ["player"]}
    lexicon = Lexicon(Language("looked", None, Looked(members, {})))
    assert lexicon.synonyms("boys") == {"boys", "lads"}
    assert lexicon.usual_sense("boys", "noun") is not None
    assert lexicon.synonyms("players") == {"player"}  # a form that only a list has: base forms stand in


def test_a_noun_of_three_words_is_one_concept_and_ends_with_a_noun():
    members = {"pick up truck.n": ["pick up truck"], "truck.n": ["truck"], "do.n": ["do"], "do.v": ["do"]}
    language = Language("trucks", None, DictWordNet(members, {}))
    lexicon, content = Lexicon(language), frozenset({"noun", "verb"})

    def concepts(text, tags):
        return lexicon.concepts(Caption(text, tags=tags.split(), language=language), content)

    assert concepts("a pick up truck", "DT NN IN NN") == ["pick up truck.n"]
    assert concepts("they pick up truck", "PRP VBP RP VB") == []
    assert concepts("a do", "DT NN") == ["do.n"]  # it carries tense only as a verb
    assert concepts("they do", "PRP VBP") == []


@given(text=st.text(max_size=60))
def test_counts_are_no_more_than_there_is(text):
    words = value("words", text)
    for name in ("adjectives", "complement-phrases", "articles", "quantifiers", "concept-diversity"):
        assert 0 <= value(name, text) <= words
    assert words <= value("characters", text) <= value("characters", text, "published")
