"""Forms of English words: plurals, articles, comparison and verbs that agree, as far as captions need them.

Rules with lists of exceptions that captions use, not a dictionary: where there is a WordNet, base forms are its own.
The rules follow Huddleston and Pullum, The Cambridge Grammar of the English Language, 2002, ch. 18.
"""

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Literal

from diptych.core.reading import read_toml

WORDS = read_toml(Path(__file__).with_name("words.toml"))  # what its comments say


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLURAL_ONLY = listed(WORDS["plural-only"])

UNCOUNTED = listed(WORDS["uncounted"])

_SAME = listed("aircraft bison cattle chassis moose offspring salmon series species swine trout")
_SAME_ENDINGS = ("craft", "deer", "fish", "sheep")


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("/") for pair in text.split())


_REGULAR = re.compile(r"(?:.*(?:hu|otto|norse)|(?:ger|ro|sha|talis|cai|nor|brah|turko))man|mongoose")
_WHOLE = _pairs(WORDS["irregular"])
_ENDINGS = _pairs(WORDS["irregular-endings"])
_OES = listed(WORDS["plural-oes"])
_HARD_CH = ("stomach", "monarch", "patriarch", "matriarch", "loch", "tech", "eunuch", "epoch")
_WHOLE_BACK = {many: one for one, many in _WHOLE.items()} | _pairs(WORDS["irregular-back"])

_HEAD = re.compile(
    r"(.+?)((?:[ -])(?:of|in|on|at|to|for|with|by|de|la|the|under|from)(?:[ -]).+)", re.IGNORECASE
)


@lru_cache(maxsize=1 << 14)
def plural(noun: str) -> str:
    """Return more than one of ``noun``, of several words of the one that others describe: pieces of land."""
    of = _HEAD.fullmatch(noun)
    if of:
        return plural(of[1]) + of[2]
    before, last = _last_word(noun)
    if last.lower() in PLURAL_ONLY:
        return noun
    return before + cased_like(last, _plural(last.lower()))


@lru_cache(maxsize=1 << 14)
def singular(noun: str) -> str | None:
    """Return one of what ``noun`` has several of; None where it is no plural, or one that has no singular, as jeans."""
    before, last = _last_word(noun)
    found = None if last.lower() in PLURAL_ONLY else _singular(last.lower())
    return None if found is None else before + cased_like(last, found)


def _last_word(noun: str) -> tuple[str, str]:
    whole = noun.lower() in _WHOLE or noun.lower() in _WHOLE_BACK
    cut = -1 if whole else max(noun.rfind(" "), noun.rfind("-"))
    return noun[: cut + 1], noun[cut + 1 :]


def cased_like(model: str, text: str) -> str:
    """Return ``text`` in capitals where ``model`` is, with a capital where ``model`` has one, else as it is."""
    if model.isupper() and len(model) > 1:
        return text.upper()
    return text[:1].upper() + text[1:] if model[:1].isupper() else text


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
    if noun in _OES or (noun.endswith(("s", "x", "z", "ch", "sh")) and not noun.endswith(_HARD_CH)):
        return noun + "es"
    return noun[:-1] + "ies" if _consonant_y(noun) else noun + "s"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2:-1] not in ("a", "e", "o", "u", "")


# Ends of singulars that the rules would get wrong, by the letters of their plurals.
_IE = listed(WORDS["singular-ie"])
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
    if not noun.endswith("s") or noun.endswith(("ss", "us", "is")) or len(noun) < 3 or noun in _S | UNCOUNTED:
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


_COMPARED = {"good": ("better", "best"), "bad": ("worse", "worst"), "far": ("farther", "farthest")}
_SYLLABLES = re.compile(r"[aeiouy]+")
_DOUBLED = re.compile(r"[^aeiouy]*[aeiouy][bdgmnpt]")


def compared(adjective: str, degree: Literal["comparative", "superlative"]) -> str:
    """Return ``larger`` or ``largest`` of ``large``; ``more`` or ``most`` before what takes no ending: ``wooden``."""
    which = ("comparative", "superlative").index(degree)
    if adjective.lower() in _COMPARED:
        return _COMPARED[adjective.lower()][which]
    ending = ("er", "est")[which]
    syllables = len(_SYLLABLES.findall(adjective.removesuffix("e")))
    short = syllables < 2 or (syllables == 2 and adjective.endswith(("y", "ow", "le")))
    if {" ", "-"} & {*adjective} or not short:
        return f"{('more', 'most')[which]} {adjective}"
    if adjective.endswith("y") and adjective[-2:-1] not in ("a", "e", "o"):
        return adjective[:-1] + "i" + ending
    if adjective.endswith("e"):
        return adjective + ending[1:]
    return adjective + (adjective[-1] if _DOUBLED.fullmatch(adjective) else "") + ending


# Letters whose names begin with a vowel, for words that are spelled out: an SUV, an X-ray, a U-turn.
_SPOKEN = "aefhilmnorsx"
_SPELLED = listed("atm atv fbi hd hiv lcd led mp3 mri nba nfl rv suv ufo usb")
_LETTER = re.compile(r"[a-z](?:-|$)")

_CONSONANT_SOUND = re.compile(
    r"eu|ewe|one(?![a-z])|once|oneself|oui|"  # a European, a ewe, a one-way street
    r"u(?:ni(?!n|m|d)|nan|s[aeu]|t[eio]|r[aiou]|k|biq|vu|gand)"  # a unicorn, a useful, a utensil, a ukulele
)
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honest|hono|heir|8|1[18](?!\d)")


def article_before(word: str) -> str:
    """Return ``a`` or ``an``, whichever goes before ``word``: an hour, a unicorn, an SUV, an 8."""
    plain = unicodedata.normalize("NFD", word.lower())
    has_vowels = len(word) < 2 or not word.isupper() or set(word) & set("AEIOUY")
    spelled = plain in _SPELLED or _LETTER.match(plain) or not has_vowels
    if spelled and plain[:1].isalpha():
        return "an" if plain[0] in _SPOKEN else "a"
    if _CONSONANT_SOUND.match(plain):
        return "a"
    return "an" if _VOWEL_SOUND.match(plain) else "a"


_MANY = {"is": "are", "was": "were", "has": "have", "does": "do", "isn't": "aren't", "wasn't": "weren't"}
_ONE = {many: one for one, many in _MANY.items()}
_E = listed("aches caches canoes hoes shoes tiptoes toes")  # -ches and -oes of verbs that end in e
_ES = ("sses", "xes", "zzes", "shes", "ches", "oes", "focuses")


def for_many(verb: str) -> str:
    """Return the form for several subjects of one that has a single subject: ``runs`` → ``run``, ``is`` → ``are``."""
    if verb in _MANY:
        return _MANY[verb]
    if not verb.endswith("s") or verb.endswith("ss"):
        return verb
    if verb.endswith("ies"):
        return verb[:-1] if len(verb) < 5 else verb[:-3] + "y"
    return verb[:-2] if verb.endswith(_ES) and verb not in _E else verb[:-1]


def for_one(verb: str) -> str:
    """Return the form for a single subject of one that has several: ``run`` → ``runs``, ``are`` → ``is``."""
    if verb in _ONE:
        return _ONE[verb]
    if _consonant_y(verb):
        return verb[:-1] + "ies"
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + ("s" if verb.endswith("oo") else "es")
    return verb + "s"
