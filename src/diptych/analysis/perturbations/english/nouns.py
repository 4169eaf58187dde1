"""Plural and singular of English nouns.

Rules with lists of exceptions that captions use, not a dictionary: whoever has a WordNet asks it for base
forms first. The rules follow Huddleston and Pullum, The Cambridge Grammar of the English Language, 2002, ch. 18.
"""

from __future__ import annotations

import re
from functools import lru_cache

from diptych.analysis.perturbations.english.word_lists import listed

PLURAL_ONLY = listed(
    "acrobatics aerobics athletics binoculars clothes dungarees earphones electronics eyeglasses fatigues glasses "
    "goggles graphics groceries gymnastics headphones indoors innards jeans khakis leggings outdoors outskirts "
    "overalls pajamas panties pants pantyhose pliers pyjamas remains scissors shades shears shorts slacks "
    "spectacles stairs suds sunglasses surroundings suspenders sweatpants tights tongs trousers trunks tweezers "
    "underpants"
)
"""What is worn or held in pairs and the like: plural in form, and no singular is meant."""

UNCOUNTED = listed(
    "baggage cash clothing debris equipment foliage footwear furniture gear graffiti information jewellery jewelry "
    "leafage livestock luggage machinery money news tennis wear wildlife"
)
"""Of which there is no plural, and before which there is no ``a``."""

_SAME = listed("aircraft bison cattle chassis moose offspring salmon series species swine trout")
_SAME_ENDINGS = ("craft", "deer", "fish", "sheep")

# By the end of the word: a grandchild is a child, a policewoman a woman.
_IRREGULAR = {
    "man": "men",
    "child": "children",
    "person": "people",
    "foot": "feet",
    "tooth": "teeth",
    "goose": "geese",
}
_REGULAR = re.compile(r"(?:.*(?:hu|otto|norse)|(?:ger|ro|sha|talis|cai|nor|brah|turko))man|mongoose")
_WHOLE = {
    "mouse": "mice",
    "dormouse": "dormice",
    "louse": "lice",
    "ox": "oxen",
    "quiz": "quizzes",
    "passer-by": "passers-by",
    "passerby": "passersby",
    "axe": "axes",
    "life": "lives",
    "elf": "elves",
    "self": "selves",
    "hoof": "hooves",
    "sheaf": "sheaves",
    "alumnus": "alumni",
    "fungus": "fungi",
    "criterion": "criteria",
    "phenomenon": "phenomena",
}
_VES = {
    one: one[: one.rindex("f")] + "ves"
    for one in ("leaf", "loaf", "thief", "shelf", "calf", "half", "wolf", "scarf", "knife", "wife")
}
_ENDINGS = _IRREGULAR | _VES
_OES = listed(
    "buffalo cargo domino echo embargo hero mosquito potato superhero tomato tornado torpedo veto volcano"
)
_HARD_CH = ("stomach", "monarch", "patriarch", "matriarch", "loch", "tech", "eunuch", "epoch")
_WHOLE_BACK = {many: one for one, many in _WHOLE.items()} | {
    "dice": "die",
    "oases": "oasis",
    "crises": "crisis",
    "cacti": "cactus",
    "octopi": "octopus",
    "hoofs": "hoof",
    "scarfs": "scarf",
}

_HEAD = re.compile(
    r"(.+?)((?:[ -])(?:of|in|on|at|to|for|with|by|de|la|the|under|from)(?:[ -]).+)", re.IGNORECASE
)


@lru_cache(maxsize=1 << 14)
def plural(noun: str) -> str:
    """More than one of ``noun``, which stands for one; several words: of the one that the others describe.

    >>> [plural(noun) for noun in ("dog", "knife", "piece of land", "adult male", "sheep", "Box")]
    ['dogs', 'knives', 'pieces of land', 'adult males', 'sheep', 'Boxes']
    """
    of = _HEAD.fullmatch(noun)
    if of:
        return plural(of[1]) + of[2]
    before, last = _last_word(noun)
    if last.lower() in PLURAL_ONLY:
        return noun
    return before + _like(last, _plural(last.lower()))


@lru_cache(maxsize=1 << 14)
def singular(noun: str) -> str | None:
    """One of what ``noun`` has several of; None where it is no plural, or one that has no singular.

    >>> [singular(noun) for noun in ("dogs", "knives", "buses", "glass", "jeans", "People")]
    ['dog', 'knife', 'bus', None, None, 'Person']
    """
    before, last = _last_word(noun)
    found = None if last.lower() in PLURAL_ONLY else _singular(last.lower())
    return None if found is None else before + _like(last, found)


def _last_word(noun: str) -> tuple[str, str]:
    whole = noun.lower() in _WHOLE or noun.lower() in _WHOLE_BACK
    cut = -1 if whole else max(noun.rfind(" "), noun.rfind("-"))
    return noun[: cut + 1], noun[cut + 1 :]


def _like(model: str, word: str) -> str:
    """``word`` in capitals, or with one, as ``model`` is."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def _plural(noun: str) -> str:
    if noun in _WHOLE:
        return _WHOLE[noun]
    if noun in UNCOUNTED or noun in _SAME or noun.endswith(_SAME_ENDINGS):
        return noun
    if not _REGULAR.fullmatch(noun):
        for one, many in _ENDINGS.items():
            if noun.endswith(one):
                return noun.removesuffix(one) + many
    if noun.endswith(("sis", "xis")):
        return noun[:-2] + "es"
    if noun.endswith(("s", "x", "z", "ch", "sh")) and not noun.endswith(_HARD_CH):
        return noun + "es"
    if noun in _OES:
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in ("a", "e", "o", "u", ""):
        return noun[:-1] + "ies"
    return noun + "s"


# Ends of singulars that the rules would get wrong, by the letters of their plurals.
_IE = listed(
    "birdie bookie boogie bowtie brownie calorie collie cookie doggie foodie freebie genie goalie hippie hoodie indie "
    "junkie kiddie laddie magpie movie necktie newbie pinkie pixie prairie rookie selfie smoothie sortie sweetie "
    "townie veggie walkie yuppie zombie"
)
_OE = ("shoe", "canoe", "toe", "hoe", "foe", "oboe", "doe")
_CHE = re.compile(
    r"(?:|head|tooth|stomach|back|ear|heart|m(?:o?u)st)ache|cache|niche|quiche|avalanche|brioche"
)
_S = listed("gas lens iris canvas atlas christmas pancreas trellis portcullis bias pampas")
_USE = ("ouse", "ause", "uise", "fuse", "muse", "cuse", "ruse")
_VOWEL = listed("ski taxi bikini kiwi safari zucchini panini sari khaki menu emu gnu")
_MEN = listed("abdomen omen regimen semen specimen stamen yemen")


def _singular(noun: str) -> str | None:
    if noun in _WHOLE_BACK:
        return _WHOLE_BACK[noun]
    if noun in _SAME or noun.endswith(_SAME_ENDINGS):
        return noun
    for one, many in _ENDINGS.items():
        if noun.endswith(many) and noun not in _MEN:
            return noun.removesuffix(many) + one
    one = noun[:-1]
    if one in _VOWEL:
        return one
    if (
        not noun.endswith("s")
        or noun.endswith(("ss", "us", "is"))
        or len(noun) < 3
        or noun in _S
        or noun in UNCOUNTED
    ):
        return None
    if noun.endswith("ies"):
        return one if one in _IE or len(noun) < 5 else noun[:-3] + "y"
    if noun.endswith("oes"):
        return one if noun[:-2] not in _OES and one.endswith(_OE) else noun[:-2]
    if noun.endswith("ches"):
        return one if _CHE.fullmatch(one) else noun[:-2]
    if noun.endswith(("sses", "shes", "xes", "zzes", "tzes")):
        return noun[:-2]
    if noun.endswith("ses"):
        us = noun.endswith("uses") and not one.endswith(_USE)
        return noun[:-2] if us or noun[:-2] in _S else one
    return one
