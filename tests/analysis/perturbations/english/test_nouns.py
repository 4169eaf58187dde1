from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations.english import PLURAL_ONLY, UNCOUNTED, plural, singular

FORMS = {
    "dog": "dogs",
    "bus": "buses",
    "glass": "glasses",
    "dress": "dresses",
    "lens": "lenses",
    "box": "boxes",
    "bench": "benches",
    "brush": "brushes",
    "stomach": "stomachs",
    "moustache": "moustaches",
    "waltz": "waltzes",
    "quiz": "quizzes",
    "prize": "prizes",
    "puppy": "puppies",
    "toy": "toys",
    "tie": "ties",
    "movie": "movies",
    "cookie": "cookies",
    "potato": "potatoes",
    "photo": "photos",
    "zoo": "zoos",
    "shoe": "shoes",
    "canoe": "canoes",
    "knife": "knives",
    "bookshelf": "bookshelves",
    "wolf": "wolves",
    "glove": "gloves",
    "roof": "roofs",
    "giraffe": "giraffes",
    "house": "houses",
    "blouse": "blouses",
    "horse": "horses",
    "nose": "noses",
    "vase": "vases",
    "man": "men",
    "policewoman": "policewomen",
    "human": "humans",
    "grandchild": "grandchildren",
    "person": "people",
    "foot": "feet",
    "goose": "geese",
    "mongoose": "mongooses",
    "mouse": "mice",
    "ox": "oxen",
    "oasis": "oases",
    "axe": "axes",
    "ski": "skis",
    "taxi": "taxis",
    "menu": "menus",
    "passerby": "passersby",
    "passer-by": "passers-by",
    "adult male": "adult males",
    "T-shirt": "T-shirts",
    "Man": "Men",
    "DOG": "DOGS",
}


@pytest.mark.parametrize(("one", "many"), FORMS.items())
def test_there_and_back(one: str, many: str) -> None:
    assert plural(one) == many
    # glasses are worn more often than drunk from
    assert singular(many) == (None if many in PLURAL_ONLY else one)


@pytest.mark.parametrize(
    ("noun", "many"),
    [
        ("piece of land", "pieces of land"),
        ("man of letters", "men of letters"),
        ("mother-in-law", "mothers-in-law"),
        ("fishing rod", "fishing rods"),
        ("ice cream", "ice creams"),
        ("leaf", "leaves"),
        ("headscarf", "headscarves"),
        ("wildlife", "wildlife"),
    ],
)
def test_of_several_words_the_one_that_the_others_describe(noun: str, many: str) -> None:
    assert plural(noun) == many


@pytest.mark.parametrize("noun", ["sheep", "goldfish", "reindeer", "aircraft", "species"])
def test_one_and_many_may_look_alike(noun: str) -> None:
    assert plural(noun) == noun == singular(noun)


@pytest.mark.parametrize(
    "noun", ["dog", "glass", "bus", "gas", "tennis", "abdomen", "lens", "is", "jeans", ""]
)
def test_what_is_no_plural_has_no_singular(noun: str) -> None:
    assert singular(noun) is None


def test_pairs_and_masses_stay() -> None:
    assert all(plural(noun) == noun for noun in PLURAL_ONLY | UNCOUNTED)


@given(st.text(max_size=12))
def test_any_text_has_a_plural_and_none_is_lost(noun: str) -> None:
    assert isinstance(plural(noun), str)
    one = singular(noun)
    assert one is None or one != "" or noun == ""
