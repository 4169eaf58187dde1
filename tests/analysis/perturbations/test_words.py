"""Synonyms, hypernyms and hyponyms in a language small enough to know the answers; distractions."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import perturbing
import pytest
from everyday_language import everyday, tagged
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbing import perturbed, perturbed_tagged, text_perturbation

from diptych.data.language import words_of

LANGUAGE = everyday()


def replaced(name, *captions, **options):
    return perturbed(name, *captions, options=options, language=LANGUAGE)


def test_a_synonym_of_the_usual_sense_in_its_form():
    for name, before, after in [
        ("noun", "A dog runs.", "A domestic dog runs."),
        ("noun", "Dogs run.", "Domestic dogs run."),
        ("noun", "an orchid", "an orchidaceous plant"),
        ("noun", "three men", "three adult males"),
        ("noun", "two people", "two individuals"),
        ("noun", "two children", "two kids"),
        ("noun", "a boy", "a male child"),
        ("noun", "cookies", "biscuits"),  # cooky has the same plural
        ("noun", "a dog in front of grass", "a domestic dog in front of grass"),
        ("noun", "a street dog", "a street domestic dog"),
        ("noun", "Dog", "Domestic dog"),
        ("adjective", "a large hat", "a big hat"),
        ("adjective", "A larger hat", "A bigger hat"),
        ("adjective", "the largest hat", "the biggest hat"),
        ("adjective", "an old hat", "an aged hat"),
        ("adjective", "a happy dog", "a felicitous dog"),
    ]:
        assert replaced(f"synonym-{name}", before).texts == [after]


def test_what_has_no_synonym_k_of_them_more_senses_and_any_synonym():
    outcome = replaced("synonym-noun", "the street", "zorgl", "is", "a hot dog")
    assert outcome.texts == ["the street", "zorgl", "is", "a frank"]
    assert outcome.reasons == {"no noun that is known": 2, "no noun with a synonym": 1}
    text = "a dog and a man, a street"
    assert replaced("synonym-noun", text, k=5).texts == ["a domestic dog and an adult male, a street"]
    found = {*replaced("synonym-noun", *["a dog"] * 60, senses=2, choice="any").texts}
    assert found == {"a domestic dog", "a frump"}
    found = {*replaced("synonym-noun", *["a man with glasses"] * 60, choice="any").texts}
    assert found == {"an adult male with glasses", "a man with spectacles", "a man with specs"}


class WithTwoWordsMore:
    name = fingerprint = "with two words more"

    def tag(self, sentences):
        tags, known = {"pierced": "JJ", "'s": "POS"}, LANGUAGE.need_tagger("this test").tag(sentences)
        pairs = [zip(*pair, strict=True) for pair in zip(sentences, known, strict=True)]
        return [[tags.get(token, tag) for token, tag in pair] for pair in pairs]


def test_as_published():
    pytest.importorskip("nltk")
    language = type(LANGUAGE)("x", WithTwoWordsMore(), LANGUAGE.wordnet)
    for name, before, after in (
        # the first noun with a synonym, however it is written, and nothing is inflected
        ("noun", "A street dog and a man.", "A street domestic dog and a man ."),
        ("noun", "Two dogs, three men", "Two dog , three men"),
        ("noun", "An orchid", "An orchidaceous plant"),
        ("noun", "the man's hat", "the adult male 's hat"),
        # all parts of speech, as pierced became pierce
        ("adjective", "a pierced dog", "a pierce dog"),
        # where no word is replaced, tokens are joined all the same
        ("noun", "the street, red.", "the street , red ."),
        ("adjective", "", ""),
    ):
        done = perturbed(f"synonym-{name}", before, compat="published", language=language)
        assert done.texts == [after]


def test_a_thing_becomes_what_it_is_a_kind_of():
    # entity 0, organism 1, animal 2, vertebrate 3, mammal 4, carnivore 5, canine and pet 6, dog 7
    found = {*replaced("hypernym-noun", *["Two dogs"] * 40).texts}
    assert found == {"Two canines", "Two domestic animals"}
    assert replaced("hypernym-noun", "a poodle", depth=7).texts == ["a dog"]
    assert replaced("hypernym-noun", "tennis players", depth=2).texts == ["players"]
    outcome = replaced("hypernym-noun", "a person", "a dog", "a ball", "zorgl", depth=7)
    assert outcome.texts == ["a person", "a dog", "a ball", "zorgl"]
    assert outcome.reasons == {"no noun with a hypernym that is deep enough": 3, "no noun that is known": 1}
    assert replaced("hypernym-noun", "a person", depth=1).texts == ["an organism"]
    assert text_perturbation("hypernym-noun").keeps_meaning


def test_a_thing_becomes_a_kind_of_it_but_no_person_unless_asked_for():
    assert replaced("hyponym-noun", "Two balls and a street").texts == ["Two spheres and a street"]
    # Airedale is written with a capital
    assert {*replaced("hyponym-noun", *["a dog"] * 20).texts} == {"a poodle"}
    outcome = replaced("hyponym-noun", "a man", "players")
    assert outcome.texts == ["a man", "players"]
    assert outcome.reasons == {"no noun with a hyponym": 2}
    with_people = replaced("hyponym-noun", "a man", "players", people=True).texts
    assert with_people == ["a bachelor", "tennis players"]
    assert not text_perturbation("hyponym-noun").keeps_meaning


def test_the_caption_ends_as_it_did():
    for text, expected in [
        ("A dog runs.", "A dog runs and true is true."),
        ("A dog runs", "A dog runs and true is true"),
        ("A dog runs .", "A dog runs and true is true ."),
        ("Dogs?! \n", "Dogs and true is true?! \n"),
        ("U.S. flag...", "U.S. flag and true is true..."),
        ('He says "hi."', 'He says "hi." and true is true'),
        ("一只狗。", "一只狗 and true is true。"),
        ("🎉", "🎉 and true is true"),
    ]:
        done = perturbed("distraction-true", text)
        assert (done.texts, done.reasons) == ([expected], {})


def swapped(*captions, **options):
    tags = [tagged(one) for one in captions]
    return perturbed("attribute-swap", *captions, options=options, tags=tags)


def test_attributes_of_one_kind_change_places():
    for before, after in [
        ("A red ball and a blue hat.", "A blue ball and a red hat."),
        ("Red ball on blue hat", "Blue ball on red hat"),
        ("an orange cat in a black hat", "a black cat in an orange hat"),
        ("a small dog with a large ball", "a large dog with a small ball"),
        ("a red wooden table, a blue car", "a blue wooden table, a red car"),
        ("a man in red and a woman in blue", "a man in blue and a woman in red"),
        ("a blue tennis player in red hats", "a red tennis player in blue hats"),
    ]:
        assert swapped(before).texts == [after]
    for text in (
        "a black and white dog",  # of one noun
        "a red ball and a blue ball",  # the caption again
        "a red ball and a red hat",
        "a red ball and a large hat",  # a colour and a size
        "a small ball and a little hat",  # the same in other words
        "a white dog with a black and white ball",  # a noun would be white twice
    ):
        assert swapped(text).reasons == {"no two different attributes of one kind with different nouns": 1}
    drawn = Counter(swapped(*["a red dog, a blue cat, a black hat"] * 300).texts)
    assert len(drawn) == 3
    assert min(drawn.values()) > 60  # every pair may be drawn


def test_what_is_said_is_denied():
    for caption, after in [
        ("A/DT dog/NN is/VBZ running/VBG", "A dog is not running"),
        ("Dogs/NNS were/VBD seen/VBN", "Dogs were not seen"),
        ("A/DT dog/NN runs/VBZ home/NN", "A dog does not run home"),
        ("A/DT boy/NN jumps/NNS in/IN", "A boy does not jump in"),
        ("Two/CD dogs/NNS run/VBP", "Two dogs do not run"),
        ("A/DT dog/NN has/VBZ a/DT ball/NN", "A dog does not have a ball"),
        ("A/DT dog/NN has/VBZ caught/VBN it/PRP", "A dog has not caught it"),
        ("You/PRP can/MD see/VB it/PRP", "You cannot see it"),
        ("It/PRP must/MD run/VB", "It must not run"),
        ("There/EX is/VBZ a/DT dog/NN", "There is no dog"),
        ("There/EX are/VBP two/CD dogs/NNS", "There are no dogs"),
        ("There/EX is/VBZ water/NN", "There is not water"),
        ("Two/CD dogs/NNS in/IN grass/NN", "No dogs in grass"),
        ("A/DT dog/NN running/VBG", "No dog running"),
        ("The/DT dog/NN", "No dog"),
        ("Dogs/NNS in/IN grass/NN", "No dogs in grass"),
        ("Dog/NNP playing/VBG", "No dog playing"),
        ("London/NNP Bridge/NNP", "No London Bridge"),
        ("his/PRP$ dog/NN with/IN a/DT ball/NN", "his dog with no ball"),
    ]:
        assert perturbed_tagged("negation", caption).texts == [after]
    for reason, captions in (
        ("it is negated already", "No/DT dog/NN|A/DT dog/NN isn't/VBZ red/JJ|a/DT man/NN without/IN hat/NN"),
        ("neither a verb nor a noun that can be negated", "|running/VBG|his/PRP$ dog/NN|near/IN Paris/NNP"),
    ):
        for one in captions.split("|"):
            assert perturbed_tagged("negation", one).reasons == {reason: 1}


def test_another_number_and_what_agrees_with_it():
    for caption, after in [
        ("Two/CD dogs/NNS run/VBP", {"Three dogs run"}),
        ("the/DT five/CD dogs/NNS", {"the four dogs", "the six dogs"}),
        ("five/CD dogs/NNS", {"four dogs", "six dogs"}),
        ("Twelve/CD men/NNS", {"Eleven men"}),
        ("3/CD dogs/NNS", {"2 dogs", "4 dogs"}),
        ("a/DT dog/NN", {"two dogs"}),
        ("One/CD old/JJ woman/NN", {"Two old women"}),
        ("A/DT dog/NN is/VBZ running/VBG", {"Two dogs are running"}),
        ("A/DT dog/NN was/VBD seen/VBN", {"Two dogs were seen"}),
        ("A/DT dog/NN catches/VBZ the/DT ball/NN", {"Two dogs catch the ball"}),
        ("A/DT dog/NN can/MD run/VB", {"Two dogs can run"}),
        ("A/DT group/NN of/IN people/NNS sit/VBP", {"Two groups of people sit"}),
        ("There/EX is/VBZ a/DT dog/NN", {"There are two dogs"}),
        ("Dogs/NNS are/VBP running/VBG", {"A dog is running"}),
        ("Brown/JJ owls/NNS watch/VBP", {"A brown owl watches"}),
        ("several/JJ apples/NNS", {"an apple"}),
        ("the/DT man/NN with/IN apples/NNS", {"the man with an apple"}),
        ("the/DT man/NN is/VBZ holding/VBG an/DT apple/NN", {"the man is holding two apples"}),
        (
            "a/DT dog/NN in/IN a/DT hat/NN is/VBZ red/JJ",
            {"two dogs in a hat are red", "a dog in two hats is red"},
        ),
        ("a/DT man/NN and/CC a/DT boy/NN sit/VBP", {"two men and a boy sit", "a man and two boys sit"}),
    ]:
        assert {*perturbed_tagged("number-change", caption, 60).texts} == after
    not_sure = (
        "the/DT dog/NN|his/PRP$ dogs/NNS|a/DT lot/NN|in/IN shorts/NNS|"
        "A/DT dog/NN wags/VBZ its/PRP$ tail/NN|A/DT dog/NN who/WP is/VBZ red/JJ|"
        "A/DT dog/NN runs/VBZ and/CC jumps/VBZ|this/DT is/VBZ a/DT dog/NN|"
        "Water/NN is/VBZ seen/VBN while/IN a/DT dog/NN runs/VBZ|Racing/VBG greyhounds/NNS|"
        "pool/NN of/IN balls/NNS|the/DT boy/NN runs/NNS|1000/CD dogs/NNS|02/CD dogs/NNS|two/CD|"
    )
    for caption in not_sure.split("|"):
        assert perturbed_tagged("number-change", caption).reasons == {
            "no number that can surely be changed": 1
        }


SHUFFLES = (
    "shuffle-nouns-and-adjectives",
    "shuffle-all-words",
    "shuffle-all-but-nouns-and-adjectives",
    "shuffle-within-trigrams",
    "shuffle-trigrams",
)
TAGS = {"dog": "NN", "cats": "NNS", "Paris": "NNP", "red": "JJ", "bigger": "JJR", "old": "JJ", "man": "NN"}
WORDS = [*TAGS, "a", "the", "runs", "don't", "in", "кот", "7"]

captions = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", ", ", ".  ", " 🎉 ", "!"])), max_size=14
).map(lambda parts: "".join(word + mark for word, mark in parts))


def shuffled(name, texts, seed=0, compat="none"):
    tags = [[TAGS.get(word.text, "DT") for word in words_of(text)] for text in texts]
    return perturbing.perturbed(name, *texts, seed=seed, tags=tags, compat=compat)


def words(text):
    return [word.text for word in words_of(text)]


@settings(max_examples=60)
@given(text=captions)
def test_words_are_kept_and_marks_stay(text):
    for name in SHUFFLES:
        after = shuffled(name, [text]).texts[0]
        assert Counter(words(after)) == Counter(words(text))
        marks = [token.text for token in words_of(text, marks=True)]
        turned = [token.text for token in words_of(after, marks=True)]
        assert [token for token in turned if token not in WORDS] == [
            token for token in marks if token not in WORDS
        ]


def arrangements(name, of):
    """Every order of words that the name allows, by listing them."""
    places = range(len(of))
    parts = [places[start : start + 3] for start in places[::3]]
    if name == "shuffle-trigrams":
        return {tuple(of[place] for part in order for place in part) for order in permutations(parts)}
    nouns, adjectives = (
        [place for place in places if TAGS.get(of[place], "").startswith(tag)] for tag in ("NN", "JJ")
    )
    groups = {
        "shuffle-nouns-and-adjectives": [nouns, adjectives],
        "shuffle-all-words": [places],
        "shuffle-all-but-nouns-and-adjectives": [[one for one in places if one not in nouns + adjectives]],
        "shuffle-within-trigrams": parts,
    }[name]
    found = set()
    for orders in product(*map(permutations, groups)):
        result = list(of)
        for group, order in zip(groups, orders, strict=True):
            for to, come in zip(group, order, strict=True):
                result[to] = of[come]
        found.add(tuple(result))
    return found


@settings(max_examples=60)
@given(chosen=st.lists(st.sampled_from(["dog", "man", "red", "old", "a", "in"]), max_size=6))
def test_another_text_whenever_there_is_one(chosen):
    for name in SHUFFLES:
        possible = arrangements(name, chosen) - {tuple(chosen)}
        done = shuffled(name, [" ".join(chosen)])
        if possible:
            assert done.changed[0]
            assert tuple(done.texts[0].split()) in possible
        else:
            assert not done.changed[0]
            assert len(done.reasons) == 1
            assert next(iter(done.reasons)).startswith("no ")


def test_every_other_arrangement_is_as_likely():
    for name, text in [
        ("shuffle-nouns-and-adjectives", "red dog old man"),
        ("shuffle-all-words", "a red dog a"),
        ("shuffle-all-but-nouns-and-adjectives", "the red a dog in"),
        ("shuffle-within-trigrams", "a red dog the man"),
        ("shuffle-trigrams", "a red dog the old man in Paris"),
    ]:
        possible = arrangements(name, text.split()) - {tuple(text.split())}
        n = 300 * len(possible)
        counts = Counter(tuple(after.split()) for after in shuffled(name, [text] * n).texts)
        assert set(counts) == possible
        assert all(abs(count - 300) < 5 * 300**0.5 for count in counts.values())
