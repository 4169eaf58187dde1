"""Another number of something: ``two dogs`` → ``three dogs``, ``a dog is`` → ``two dogs are``, ``dogs`` → ``a dog``.

One noun phrase of a caption is changed, drawn among those where the result is sure to be English:

- a number with a plural becomes its neighbour, two or more;
- ``a``, ``an`` or ``one`` with a noun for one becomes ``two`` with its plural;
- a plural without an article, or behind ``several``, ``some`` and the like, becomes one, with its article (not
  behind ``of`` and ``between``, and not where it may be a verb);
- where the phrase is the caption's subject, or stands in ``there is …``, the one verb that agrees with it is
  changed with it (``is``/``are``, ``was``/``were``, ``has``/``have``, ``runs``/``run``).

A subject is passed over where more than one verb, a relative clause or a pronoun (``its``) would have to agree, and
so is a phrase that may be the subject of a later clause. Phrases with ``the`` or a possessive are left alone, for
what can be counted cannot be told (``the snow``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from diptych.analysis.perturbations.caption import Caption, Span, Unchanged, rewritten
from diptych.analysis.perturbations.declaration import NoOptions, TextPerturbation, registering
from diptych.analysis.perturbations.english import (
    PLURAL_ONLY,
    article_before,
    for_many,
    for_one,
    listed,
    plural,
    singular,
)
from diptych.analysis.perturbations.phrases import (
    BE,
    NUMBERS,
    SEVERAL,
    NounPhrase,
    finite_verbs,
    mended_tags,
    noun_phrases,
)
from diptych.core.draws import Draws

Change = dict[Span, str]

_NO_COUNT = listed(  # a lot of: no number of anything
    "bit couple day dozen few half hundred kind little lot number pair sort thousand time type variety while"
)
_REFERRING = frozenset({"PRP", "PRP$", "WDT", "WP", "WP$", "WRB"})
_CLAUSE = listed("and as because but or so that when where which while who")
_RELATIVE = (["who"], ["that"], ["which"], ["whose"])
_OF_SEVERAL = ("of", "between", "among")
_MOST = 99


@registering(
    TextPerturbation,
    name="number-change",
    description="another number of something: two dogs, three dogs",
    group="meaning",
    source="thesis §5.7, future work",
    keeps_meaning=False,
    needs=frozenset({"tags"}),
)
def _apply(caption: Caption, draws: Draws, options: NoOptions) -> str:
    sentence = _Sentence(caption)
    candidates = [
        changes
        for number, phrase in enumerate(noun_phrases(caption, sentence.tags))
        if (changes := sentence.changes(phrase, first=number == 0))
    ]
    if not candidates:
        raise Unchanged("no number that can surely be changed")
    return rewritten(caption, draws.choice(draws.choice(candidates)))


class _Sentence:
    """A caption as far as agreement goes."""

    def __init__(self, caption: Caption) -> None:
        self.caption = caption
        self.words = caption.lower
        self.tags = mended_tags(caption)
        self.verbs = finite_verbs(caption, self.tags)

    def changes(self, phrase: NounPhrase, *, first: bool) -> list[Change]:
        """The ways to change the number of a phrase; none where no way is sure to be English."""
        noun, at = self.words[phrase.head], phrase.determiner
        determiner = "" if at is None else self.words[at]
        if phrase.plural and at is not None and (others := _neighbours(determiner)):
            return [{(at, at): other} for other in others]
        if self.tags[phrase.head] not in ("NN", "NNS") or noun in _NO_COUNT or noun in PLURAL_ONLY:
            return []
        after = phrase.head + 1
        if self._is_possessive(phrase.head) or self.words[after : after + 1] in _RELATIVE:
            return []
        if self.tags[after : after + 1] == [
            "JJ"
        ]:  # a tagger may have missed an adjective: a rickety narrow bridge
            return []
        if (
            not phrase.plural
            and at is not None
            and determiner in ("a", "an", "one")
            and not _looks_plural(noun)
        ):
            verb = self._verb(phrase, for_many, ("VBZ", "is", "was"), first)
            change = {(at, at): "two", (phrase.head, phrase.head): plural(noun)}
            return [] if verb is None else [change | verb]
        one = singular(noun)
        if one is None or not phrase.plural or (determiner and determiner not in SEVERAL):
            return []
        if at is None and self._unsure(phrase):
            return []
        verb = self._verb(phrase, for_one, ("VBP", "are", "were"), first)
        if verb is None:
            return []
        words = [*self.words[phrase.first : phrase.head], one]
        article = article_before(words[0])
        change = {(phrase.head, phrase.head): one}
        if at is not None:
            change[at, at] = article
        else:
            change[phrase.first, phrase.first] = f"{article} {words[0]}"
        return [change | verb]

    def _is_possessive(self, place: int) -> bool:
        """Whether an apostrophe follows, as in captions that are in tokens: ``the man 's``."""
        end = self.caption.words[place].end
        return self.caption.text[end : end + 3].lstrip()[:1] in ("'", "’")

    def _unsure(self, phrase: NounPhrase) -> bool:
        """Whether a plural without an article may be a verb, or one would not do."""
        if any(tag.startswith("NN") for tag in self.tags[phrase.first : phrase.head]):
            return True
        if phrase.first == 0:
            return False
        before = self.tags[phrase.first - 1]
        if phrase.first == 1 and before == "VBG":  # racing dogs
            return True
        return not before.startswith(("IN", "VB")) or self.words[phrase.first - 1] in _OF_SEVERAL

    def _verb(
        self, phrase: NounPhrase, agreeing: Callable[[str], str], forms: tuple[str, ...], first: bool
    ) -> Change | None:
        """What becomes of the verb that agrees with a phrase; None where that is not sure."""
        cut = bisect_left(self.verbs, phrase.start)
        before, after = self.verbs[max(cut - 1, 0) : cut], self.verbs[cut : cut + 2]
        if before and self.words[before[0]] in BE and before[0] == phrase.start - 1:
            there = before[0] > 0 and self.words[before[0] - 1] == "there" and not after
            return self._agreed(before[0], agreeing, forms) if there else None
        if first and not before and _REFERRING & {*self.tags[phrase.head :]}:
            return None
        if not after:
            return {}
        if before:
            clause = self.words[phrase.start - 1] in _CLAUSE or after[0] == phrase.head + 1
            return None if clause else {}
        if not first:
            return None if self.tags[0] == "IN" else {}
        if len(after) > 1:
            return None
        between = self.words[phrase.head : after[0]]
        if "that" in between or ("and" in between and agreeing is for_one):
            return None
        return self._agreed(after[0], agreeing, forms)

    def _agreed(self, verb: int, agreeing: Callable[[str], str], forms: tuple[str, ...]) -> Change:
        if self.tags[verb] in forms or self.words[verb] in forms:
            return {(verb, verb): agreeing(self.words[verb])}
        return {}


def _looks_plural(noun: str) -> bool:
    """Whether a tagger may have missed a plural, or a verb."""
    return noun.endswith("s") and not noun.endswith(("ss", "us"))


def _neighbours(number: str) -> list[str]:
    """The numbers one below and one above, from two on, written as it is; none where it is no such number."""
    if number in NUMBERS:
        place = NUMBERS.index(number)
        return [*NUMBERS[max(place - 1, 0) : place], *NUMBERS[place + 1 : place + 2]]
    if not (number.isascii() and number.isdecimal()) or number[0] == "0" or not 2 <= int(number[:3]) <= _MOST:
        return []
    return [str(other) for other in (int(number) - 1, int(number) + 1) if other > 1]
