"""Phrases of a caption, as far as tags of single words determine them reliably.

A tagger trained on newspapers reads many verbs of captions as nouns: ``a boy jumps into water``. Right behind a noun
for one, a plural is read as a verb here where ``a`` or ``an`` opened the phrase, where a particle follows (``the girl
walks down``), and where it is one of the verbs that captions use most; so is the present participle of these (``a dog
playing``). A colour before ``and`` is an adjective (``an orange and white cat``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diptych.analysis.perturbations.caption import Caption
from diptych.analysis.perturbations.english import PLURAL_ONLY, WORDS, listed, singular
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS

# number words from two on
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

# words for more than one
SEVERAL = frozenset({"several", "some", "many", "few", "multiple", "various", "numerous"})

COLOURS = listed(WORDS["colours"])

BE = frozenset({"is", "are", "was", "were"})  # the forms of *to be* that agree with a subject
_ONE = frozenset({"a", "an", "one", "another", "each", "every"})
_DETERMINERS = _ONE | SEVERAL | frozenset(NUMBERS) | listed("the this that these those both all no any")
_VERBS = listed(WORDS["verbs"])
_PARTICIPLES = listed(WORDS["participles"])
_SEVERAL_TAGS = frozenset({"NNS", "NNPS", "CC", "CD", "PRP", "EX", "WDT", "WP"})
_MODIFIERS = ADJECTIVE_TAGS | {"VBG", "VBN", "RB"}


@dataclass(frozen=True)
class NounPhrase:
    determiner: int | None  # the place of its article, number or quantity; None where it has none
    first: int  # the place of its first word behind that
    head: int  # the place of its noun
    plural: bool  # whether that noun stands for several

    @property
    def start(self) -> int:
        return self.first if self.determiner is None else self.determiner


def mended_tags(caption: Caption) -> list[str]:
    """Return the caption's tags, with verbs that were taken for nouns put right where that is sure."""
    tags = list(caption.tags)
    opened = False  # whether ``a`` or the like opened the phrase that continues here
    for place, tag in enumerate(tags):
        if tag in ("DT", "CD"):
            opened = caption.lower[place] in _ONE
        elif tag == "NN" and tags[place + 1 : place + 2] == ["CC"] and caption.lower[place] in COLOURS:
            tags[place] = "JJ"
        elif tag in ("NN", "NNS") and place and tags[place - 1] == "NN":
            verb = _verb_form(caption.lower[place], tag, tags[place + 1 : place + 2], opened)
            if verb:
                tags[place], opened = verb, False
        elif tag not in NOUN_TAGS and tag not in _MODIFIERS:
            opened = False
    return tags


def _verb_form(word: str, tag: str, after: Sequence[str], opened: bool) -> str:
    """Return the tag of a verb that was taken for a noun right behind a noun; nothing where it may be one."""
    if after == ["NN"] or word in PLURAL_ONLY:
        return ""
    if tag == "NN":
        return "VBG" if word in _PARTICIPLES and after != ["NNS"] else ""
    return "VBZ" if opened or after == ["RP"] or word in _VERBS else ""


def noun_phrases(caption: Caption, tags: Sequence[str]) -> Iterator[NounPhrase]:
    """Yield the noun phrases of a caption, in order: a determiner, adjectives, nouns, of which the last is the head."""
    words = caption.lower
    place = 0
    while place < len(words):
        determined = words[place] in _DETERMINERS or tags[place] in ("CD", "PRP$")
        first = place + 1 if determined else place
        head, stop = _head(caption, tags, first, determined)
        if head is not None:
            plural = tags[head] in ("NNS", "NNPS") or singular(words[head]) not in (None, words[head])
            yield NounPhrase(place if determined else None, first, head, plural)
        place = max(stop, place + 1)


def _head(caption: Caption, tags: Sequence[str], first: int, determined: bool) -> tuple[int | None, int]:
    head = None
    begin = first - 1 if determined else first
    place = first
    while place < len(tags):
        tag = tags[place]
        if place > begin and not close(caption, place - 1):
            break
        if tag in NOUN_TAGS:
            head = place
        elif head is not None or not (
            tag in ADJECTIVE_TAGS
            or (tag in _MODIFIERS and determined)
            or (tag == "CC" and place > first and tags[place + 1 : place + 2] == ["JJ"])
        ):
            break
        place += 1
    return head, place


def close(caption: Caption, place: int) -> bool:
    """Return whether nothing stands between a word and the next but a blank, or a comma and a blank."""
    return caption.between(place).strip() in ("", ",")


def finite_verbs(caption: Caption, tags: Sequence[str]) -> list[int]:
    """Return the places of verbs that agree with a subject; of those in the past only ``was`` and ``were`` are sure."""
    found, several = [], False
    for place, tag in enumerate(tags):
        several = several or tag in _SEVERAL_TAGS
        if tag in ("VBZ", "MD") or (tag == "VBP" and several) or caption.lower[place] in BE:
            found.append(place)
    return found
