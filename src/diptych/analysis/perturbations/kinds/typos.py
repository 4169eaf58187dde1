"""Slips of the keyboard: single ones of the thesis, errors as people leave them, and characters misread in print.

Only letters and digits of words slip, and a letter keeps the case of its place and the accents and vowel signs that
follow it. An extra or a nearby letter is one of a touching key, so letters that the keyboard does not have are passed
over. The place of a slip is drawn evenly among those where it changes the text.
"""

import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption, Unchanged, with_changes
from diptych.analysis.perturbations.declaration import F, NoOptions, TextPerturbation, registering
from diptych.analysis.perturbations.english import WORDS
from diptych.analysis.perturbations.published import letter_change, published_form, published_slip
from diptych.core.draws import Draws
from diptych.data.language import Word

T = TypeVar("T")
Edit = tuple[int, int, str]  # start and end of what is replaced, and what comes in its place


class Letter(NamedTuple):
    """A letter or digit and what belongs to it: ``caption[start:end]``."""

    text: str
    start: int
    end: int


def letters_of(word: Word) -> list[Letter]:
    """Return the letters and digits of a word of a caption, in order, with their places in the caption."""
    letters: list[Letter] = []
    for place, character in enumerate(word.text, word.start):
        # a combining mark, or a later part of a Hangul syllable, belongs to the letter before it
        joins = _is_mark(character) or any(first <= character <= last for first, last in _HANGUL_PARTS)
        if joins and letters and letters[-1].end == place:
            last = letters.pop()
            letters.append(Letter(last.text + character, last.start, place + 1))
        elif character.isalnum():
            letters.append(Letter(character, place, place + 1))
    return letters


def _is_mark(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character)[0] == "M"


_HANGUL_PARTS = (("\u1160", "\u11ff"), ("\ud7b0", "\ud7ff"))


def in_case_of(letter: str, model: str) -> str:
    """Return ``letter`` as large or small as ``model``, where it can be and stays one letter (not ``ß``)."""
    changed = letter.upper() if model.isupper() else letter.lower() if model.islower() else letter
    return changed if len(changed) == len(letter) else letter


def drawn_apart(places: Sequence[tuple[int, T]], draws: Draws, most: int) -> list[T]:
    """Draw at most ``most`` of ``places``, each in another word: the first among all, the next among the rest."""
    found: list[T] = []
    while places and len(found) < most:
        word, place = draws.choice(places)
        found.append(place)
        if len(found) < most:
            places = [other for other in places if other[0] != word]
    return found


KeyboardName = Literal["qwerty", "azerty", "qwertz"]

KEYBOARDS: Mapping[KeyboardName, Sequence[tuple[float, str]]] = WORDS["keyboards"]


@cache
def neighbours(keyboard: KeyboardName) -> Mapping[str, str]:
    """Return for every letter and digit, in lower case, the letters or the digits on touching keys."""
    keys = [
        (height, left + place, key)
        for height, (left, row) in enumerate(KEYBOARDS[keyboard])
        for place, key in enumerate(row.split())
    ]
    found: dict[str, str] = {}
    for height, left, key in keys:
        touching = "".join(
            other
            for row, place, other in keys
            if (abs(row - height), abs(place - left)) == (0, 1)
            or (abs(row - height) == 1 and abs(place - left) < 1)
        )
        for character in key:
            if (kind := _kind(character)) != "mark":
                found[character] = "".join(other for other in touching if _kind(other) == kind)
    return found


def _kind(character: str) -> str:
    return "letter" if character.isalpha() else "digit" if character in "0123456789" else "mark"


def key_of(letter: str) -> str:
    """Return the name of a letter in :func:`neighbours`: in lower case, an accent of its own drawn in (``é``)."""
    return unicodedata.normalize("NFC", letter).lower()


_declare = partial(registering, TextPerturbation)


class Slips(NoOptions):
    edits: int = Field(
        1, ge=1, description="slips per caption, each in another word, as many as there is room for"
    )


class SlipsToKeys(Slips):
    keyboard: KeyboardName = "qwerty"


def _declare_slip(name: str, options: type[NoOptions]) -> Callable[[F], F]:
    return _declare(name, options=options, published=published_form(partial(published_slip, name)))


def _slipped(caption: Caption, places: Sequence[tuple[int, Edit]], draws: Draws, most: int, why: str) -> str:
    if not places:
        raise Unchanged(why)
    return with_changes(caption.text, drawn_apart(places, draws, most))


@_declare_slip("character-swap", Slips)
def _swap(caption: Caption, draws: Draws, options: Slips) -> str:
    places = [
        (number, (first.start, second.end, swapped))
        for number, word in enumerate(caption.words)
        for first, second in pairwise(letters_of(word))
        if (swapped := _swapped(first, second))
    ]
    return _slipped(caption, places, draws, options.edits, "no two different letters side by side")


def _swapped(first: Letter, second: Letter) -> str:
    """Return two letters in each other's place; nothing where they do not touch, or it would be the same."""
    swapped = in_case_of(second.text, first.text) + in_case_of(first.text, second.text)
    return swapped if first.end == second.start and swapped != first.text + second.text else ""


@_declare_slip("missing-character", Slips)
def _miss(caption: Caption, draws: Draws, options: Slips) -> str:
    places = [
        (number, (letter.start, letter.end, ""))
        for number, letters in enumerate(map(letters_of, caption.words))
        for letter in letters
        if len(letters) > 1  # without its only letter a word would be missing, not a letter
    ]
    return _slipped(caption, places, draws, options.edits, "no word of two letters")


def _keys(caption: Caption, draws: Draws, options: SlipsToKeys) -> list[tuple[Letter, str]]:
    near = neighbours(options.keyboard)
    words = enumerate(map(letters_of, caption.words))
    places = [(number, one) for number, letters in words for one in letters if key_of(one.text) in near]
    if not places:
        raise Unchanged(f"no letter of the {options.keyboard} keyboard")
    return [
        (letter, in_case_of(draws.choice(near[key_of(letter.text)]), letter.text))
        for letter in drawn_apart(places, draws, options.edits)
    ]


@_declare_slip("extra-character", SlipsToKeys)
def _extra(caption: Caption, draws: Draws, options: SlipsToKeys) -> str:
    chosen = [
        (draws.choice((letter.start, letter.end)), key) for letter, key in _keys(caption, draws, options)
    ]
    return with_changes(caption.text, [(place, place, key) for place, key in chosen])


@_declare_slip("nearby-character", SlipsToKeys)
def _nearby(caption: Caption, draws: Draws, options: SlipsToKeys) -> str:
    chosen = _keys(caption, draws, options)
    return with_changes(caption.text, [(letter.start, letter.end, key) for letter, key in chosen])


class LetterChange(NoOptions):
    rate: float = Field(0.1, gt=0, le=1, description="the chance of each word with a letter a–z")


@_declare("letter-change", options=LetterChange, published=published_form(letter_change))
def _change(caption: Caption, draws: Draws, options: LetterChange) -> str:
    changes, any_letter = [], False
    for word in caption.words:
        places = [
            place for place in range(word.start, word.end) if caption.text[place] in string.ascii_letters
        ]
        any_letter = any_letter or bool(places)
        if places and draws.uniform() < options.rate:
            place = draws.choice(places)
            letter = caption.text[place]
            other = draws.choice(string.ascii_lowercase.replace(letter.lower(), ""))
            changes.append((place, place + 1, in_case_of(other, letter)))
    if not any_letter:
        raise Unchanged("no letter a–z")
    if not changes:
        raise Unchanged("no word was drawn")
    return with_changes(caption.text, changes)


class TypingErrors(NoOptions):
    """Number, kinds and places of typing errors.

    Of 168,000 people's typed characters 1.17 of 100 were wrong, of 1.65 substitutions, 0.80 omissions and 0.67
    insertions (Dhakal et al., CHI 2018, Table 3). Ours is the weight of transpositions, and that first letters, which
    have few errors (Yannakoudakis and Fawthrop, IP&M 19(2), 1983; Kukich, ACM Computing Surveys 24(4), 1992), are a
    quarter as likely. An extra letter is as likely the letter once more (Pollock and Zamora, JASIS 34(1), 1983).
    """

    rate: float = Field(0.0117, gt=0, le=0.5, description="expected errors per letter or digit")
    substitution: float = Field(1.65, ge=0, description="weight of a letter of a touching key instead of one")
    omission: float = Field(0.80, ge=0, description="weight of a letter missing")
    insertion: float = Field(0.67, ge=0, description="weight of a letter too many")
    transposition: float = Field(0.165, ge=0, description="weight of two letters in each other's place")
    first_letter: float = Field(
        0.25, ge=0, description="chance of a word's first letter, as a share of another's"
    )
    keyboard: KeyboardName = "qwerty"


@_declare("typing-errors", options=TypingErrors)
def _mistype(caption: Caption, draws: Draws, options: TypingErrors) -> str:
    words = [letters_of(word) for word in caption.words]
    count, firsts = sum(map(len, words)), sum(map(bool, words))
    if not count:
        raise Unchanged("no letter")
    weights = firsts * options.first_letter + (count - firsts)
    unit = options.rate * count / weights if weights else 0.0
    changes = [change for letters in words for change in _errors(letters, draws, options, unit)]
    if not changes:
        raise Unchanged("no error was drawn")
    return with_changes(caption.text, changes)


def _errors(letters: list[Letter], draws: Draws, options: TypingErrors, unit: float) -> list[Edit]:
    near, changes, left, free = neighbours(options.keyboard), list[Edit](), len(letters), 0
    for number, letter in enumerate(letters):
        chance = unit * (1.0 if number else options.first_letter)
        if letter.start < free or draws.uniform() >= chance:
            continue
        keys = near.get(key_of(letter.text), "")
        swapped = _swapped(letter, letters[number + 1]) if number + 1 < len(letters) else ""
        weights = {
            "substitution": options.substitution if keys else 0.0,
            "omission": options.omission if left > 1 else 0.0,  # a word keeps a letter
            "insertion": options.insertion,
            "transposition": options.transposition if swapped else 0.0,
        }
        kind = _drawn(weights, draws)
        if kind == "substitution":
            changes.append((letter.start, letter.end, in_case_of(draws.choice(keys), letter.text)))
        elif kind == "omission":
            changes.append((letter.start, letter.end, ""))
            left -= 1
        elif kind == "insertion":
            twice = not keys or draws.below(2) == 0
            extra = letter.text if twice else draws.choice(keys)
            changes.append((letter.end, letter.end, in_case_of(extra, letter.text)))
        elif kind == "transposition":
            free = letters[number + 1].end
            changes.append((letter.start, free, swapped))
    return changes


def _drawn(weights: Mapping[str, float], draws: Draws) -> str | None:
    place = draws.uniform() * sum(weights.values())
    for name, weight in weights.items():
        if place < weight:
            return name
        place -= weight
    return None


CONFUSIONS: Sequence[str] = WORDS["confusions"]


class RecognitionErrors(NoOptions):
    """Rate at which printed characters are misread.

    Shapes that lie close in common type, after Nagy, Nartker and Rice (Optical Character Recognition, 1999) and
    Kukich. One to two characters wrong of a hundred is good for newspapers (Holley, D-Lib Magazine 15(3/4), 2009).
    """

    rate: float = Field(
        0.02, gt=0, le=1, description="the chance that a character, or pair, of the table is misread"
    )


# By first character: what can stand there, and what may be read for it.
_READINGS: dict[str, list[tuple[str, str]]] = {}
for _pair in CONFUSIONS:
    _one, _other = _pair.split()
    _READINGS.setdefault(_one[0], []).append((_one, _other))
    _READINGS.setdefault(_other[0], []).append((_other, _one))


@_declare("recognition-errors", options=RecognitionErrors)
def _misread(caption: Caption, draws: Draws, options: RecognitionErrors) -> str:
    text = caption.text
    changes, any_place, place = [], False, 0
    while place < len(text):
        possible = [
            (shape, read)
            for shape, read in _READINGS.get(text[place], ())
            if text.startswith(shape, place)
            and not _is_mark(text[place + len(shape) : place + len(shape) + 1])
        ]
        any_place = any_place or bool(possible)
        if possible and draws.uniform() < options.rate:
            shape, read = draws.choice(possible)
            changes.append((place, place + len(shape), read))
            place += len(shape)
        else:
            place += 1
    if not any_place:
        raise Unchanged("no character that looks like another")
    if not changes:
        raise Unchanged("no error was drawn")
    return with_changes(text, changes)
