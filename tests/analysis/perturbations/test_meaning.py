"""Phrases, and what they are read for: attributes exchanged, statements denied, numbers changed."""

from __future__ import annotations

from collections import Counter

import pytest
from everyday_language import tagged
from perturbing import perturbed, perturbed_tagged, untagged

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.phrases import noun_phrases

NO_WAY = "no number that can surely be changed"


def caption(tagged):
    text, tags = untagged(tagged)
    return Caption(text, tags=tags)


def phrases(tagged):
    given = caption(tagged)
    return [
        " ".join(word.text for word in given.words[phrase.start : phrase.head + 1]) + "+" * phrase.plural
        for phrase in noun_phrases(given, given.tags)
    ]


def swapped(*captions, **options):
    tags = [tagged(one) for one in captions]
    return perturbed("attribute-swap", *captions, options=options, tags=tags)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A red ball and a blue hat.", "A blue ball and a red hat."),
        ("Red ball on blue hat", "Blue ball on red hat"),
        ("an orange cat in a black hat", "a black cat in an orange hat"),
        ("a small dog with a large ball", "a large dog with a small ball"),
        ("a red wooden table, a blue car", "a blue wooden table, a red car"),
        ("a man in red and a woman in blue", "a man in blue and a woman in red"),
        ("a blue tennis player in red hats", "a red tennis player in blue hats"),
    ],
)
def test_attributes_of_one_kind_change_places(before, after):
    assert swapped(before).texts == [after]


@pytest.mark.parametrize(
    "caption",
    [
        "a black and white dog",  # of one noun
        "a red ball and a blue ball",  # the same said
        "a red ball and a red hat",
        "a red ball and a large hat",  # a colour and a size
        "a small ball and a little hat",  # the same in other words
        "a white dog with a black and white ball",  # a noun would be white twice
    ],
)
def test_nothing_to_exchange(caption):
    assert swapped(caption).reasons == {"no two different attributes of one kind with different nouns": 1}


def test_too_few_attributes_and_any_two_adjectives():
    outcome = swapped("a red ball and a blue one", "red, blue", "a dog", "")
    assert outcome.reasons == {"fewer than two attributes of nouns": 4}
    assert swapped("a red ball and a large hat", any=True).texts == ["a large ball and a red hat"]
    assert swapped("a happy dog, an old wooden table", any=True).n_changed == 1


def test_every_pair_may_be_drawn():
    drawn = Counter(swapped(*["a red dog, a blue cat, a black hat"] * 300).texts)
    assert len(drawn) == 3
    assert min(drawn.values()) > 60


@pytest.mark.parametrize(
    ("tagged", "after"),
    [
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
    ],
)
def test_what_is_said_is_denied(tagged, after):
    assert perturbed_tagged("negation", tagged).texts == [after]


@pytest.mark.parametrize(
    ("reason", "captions"),
    [
        ("it is negated already", "No/DT dog/NN|A/DT dog/NN isn't/VBZ red/JJ|a/DT man/NN without/IN hat/NN"),
        ("neither a verb nor a noun that can be negated", "|running/VBG|his/PRP$ dog/NN|near/IN Paris/NNP"),
    ],
)
def test_what_is_not_denied(reason, captions):
    for one in captions.split("|"):
        assert perturbed_tagged("negation", one).reasons == {reason: 1}


@pytest.mark.parametrize(
    ("tagged", "after"),
    [
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
    ],
)
def test_another_number_and_what_agrees_with_it(tagged, after):
    assert {*perturbed_tagged("number-change", tagged, 60).texts} == after


NOT_SURE = (
    "the/DT dog/NN|his/PRP$ dogs/NNS|a/DT lot/NN|in/IN shorts/NNS|"
    "A/DT dog/NN wags/VBZ its/PRP$ tail/NN|A/DT dog/NN who/WP is/VBZ red/JJ|"
    "A/DT dog/NN runs/VBZ and/CC jumps/VBZ|this/DT is/VBZ a/DT dog/NN|"
    "Water/NN is/VBZ seen/VBN while/IN a/DT dog/NN runs/VBZ|Racing/VBG greyhounds/NNS|"
    "pool/NN of/IN balls/NNS|the/DT boy/NN runs/NNS|1000/CD dogs/NNS|02/CD dogs/NNS|two/CD|"
)


@pytest.mark.parametrize("tagged", NOT_SURE.split("|"))
def test_what_is_not_sure_is_left_alone(tagged):
    assert perturbed_tagged("number-change", tagged).reasons == {NO_WAY: 1}
