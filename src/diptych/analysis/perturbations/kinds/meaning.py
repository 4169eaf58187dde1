"""Another meaning, close by: attributes exchanged, statements denied, another number of something."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import combinations

from pydantic import Field

from diptych.analysis.perturbations import english, phrases
from diptych.analysis.perturbations.caption import Caption, Span, Unchanged, rewritten
from diptych.analysis.perturbations.declaration import NoOptions, TextPerturbation, registering
from diptych.core.draws import Draws
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS

_SIZES = english.listed(english.WORDS["sizes"])
_KIND_OF = dict.fromkeys(phrases.COLOURS, "colour") | dict.fromkeys(_SIZES, "size")
_SPELT = {"gray": "grey", "little": "small", "big": "large"}  # another word for the same would change nothing
_MOST_ATTRIBUTES = 100  # attributes of one caption that are looked at: pairs are many
_BETWEEN = ADJECTIVE_TAGS | NOUN_TAGS | {"VBG", "VBN", "CD"}


class AttributeSwapOptions(NoOptions):
    any: bool = Field(default=False, description="any two adjectives, not only two colours or two sizes")


@registering(TextPerturbation, "attribute-swap", options=AttributeSwapOptions)
def _swap(caption: Caption, draws: Draws, options: AttributeSwapOptions) -> str:
    """``a red star left of a blue heart`` → ``a blue star left of a red heart``.

    Attributes of one kind, a colour with a colour or a size with a size, of two different nouns are exchanged:
    before them, or, as colours do, behind them (``a man in red``). Exchanges that would repeat the caption, or leave
    a noun with one attribute twice, are not made.
    """
    words, tags = caption.lower, phrases.mended_tags(caption)
    heads = _nouns_of(caption, tags)
    nouns = {
        place: noun
        for place, noun in enumerate(heads)
        if noun is not None and (words[place] in _KIND_OF or (options.any and tags[place] == "JJ"))
    }
    if len(nouns) < 2:
        raise Unchanged("fewer than two attributes of nouns")
    plain = [_SPELT.get(word, word) for word in words]
    described = {
        noun: {plain[place] for place in nouns if nouns[place] == noun} for noun in {*nouns.values()}
    }
    pairs = [
        (one, other)
        for one, other in combinations([*nouns][:_MOST_ATTRIBUTES], 2)
        if words[nouns[one]] != words[nouns[other]]
        and plain[one] not in described[nouns[other]]
        and plain[other] not in described[nouns[one]]
        and (options.any or _KIND_OF[words[one]] == _KIND_OF[words[other]])
    ]
    if not pairs:
        raise Unchanged("no two different attributes of one kind with different nouns")
    one, other = draws.choice(pairs)
    return rewritten(caption, {(one, one): words[other], (other, other): words[one]})


def _nouns_of(caption: Caption, tags: Sequence[str]) -> list[int | None]:
    """Return for every word the place of the noun that it stands before, or behind: ``a woman in red``."""
    found: list[int | None] = [None] * len(tags)
    for place in range(len(tags) - 2, -1, -1):
        after = place + 1
        if not phrases.close(caption, place):
            continue
        if tags[after] in NOUN_TAGS:
            more = found[after] is not None and tags[after + 1] in NOUN_TAGS
            found[place] = found[after] if more else after
        elif tags[after] in _BETWEEN or (tags[after] == "CC" and tags[after + 1 : after + 2] == ["JJ"]):
            found[place] = found[after]
    for place in range(2, len(tags)):
        if found[place] is None and caption.lower[place - 1] == "in" and tags[place - 2] in NOUN_TAGS:
            found[place] = place - 2
    return found


_NEGATIVE = english.listed("no not none nobody nothing nowhere never neither nor without cannot")
_NEGATIVE_ENDINGS = ("n't", "n’t")
_NAMES, _NAMED = ("NNP", "NNPS"), (["NNP"], ["NNPS"])
_COUNTED = english.listed("a an some any one two several many three four five lots")


@registering(TextPerturbation, "negation")
def _negate(caption: Caption, draws: Draws, options: NoOptions) -> str:
    """``a dog is running`` → ``a dog is not running``, ``there is a dog`` → ``there is no dog``.

    Else the first verb that agrees with a subject is negated; else ``no`` takes the place of the first article, number
    or quantity of a noun, or comes before the first noun that has none: ``two dogs in the grass`` → ``no dogs …``.
    """
    words, tags = caption.lower, phrases.mended_tags(caption)
    if any(word in _NEGATIVE or word.endswith(_NEGATIVE_ENDINGS) for word in words):
        raise Unchanged("it is negated already")
    for verb in phrases.finite_verbs(caption, tags):
        change = _negated(verb, words, tags)
        if change is not None:
            return rewritten(caption, change)
    for phrase in phrases.noun_phrases(caption, tags):
        at, first = phrase.determiner, phrase.first
        if at is not None and tags[at] != "PRP$":
            return rewritten(caption, {(at, at): "no"})
        if at is None and (first == 0 or tags[first] not in _NAMES):
            # A capital at the beginning is no name, unless another name follows.
            name = tags[first] in _NAMES and tags[1:2] in _NAMED
            word = caption.words[first].text if name else words[first]
            return rewritten(caption, {(first, first): f"no {word}"})
    raise Unchanged("neither a verb nor a noun that can be negated")


def _negated(verb: int, words: Sequence[str], tags: Sequence[str]) -> dict[Span, str] | None:
    word, after = words[verb], verb + 1
    if (
        word in phrases.BE
        and words[max(verb - 1, 0) : verb] == ["there"]
        and _COUNTED & {*words[after : after + 1]}
    ):
        return {(after, after): "no"}
    perfect = word in ("has", "have") and tags[after : after + 1] == ["VBN"]
    if perfect or word in phrases.BE or word in ("does", "do"):
        return {(verb, verb): f"{word} not"}
    if tags[verb] == "MD":
        return {(verb, verb): "cannot" if word == "can" else f"{word} not"}
    if tags[verb] == "VBZ":
        return {(verb, verb): f"does not {english.for_many(word)}"}
    return {(verb, verb): f"do not {word}"}


Change = dict[Span, str]
_NO_COUNT = english.listed(english.WORDS["not-counted"])
_REFERRING = frozenset({"PRP", "PRP$", "WDT", "WP", "WP$", "WRB"})
_CLAUSE = english.listed("and as because but or so that when where which while who")
_RELATIVE = (["who"], ["that"], ["which"], ["whose"])
_OF_SEVERAL = ("of", "between", "among")
_MOST = 99


@registering(TextPerturbation, "number-change")
def _change_number(caption: Caption, draws: Draws, options: NoOptions) -> str:
    """``two dogs`` → ``three dogs``, ``a dog is`` → ``two dogs are``, ``dogs`` → ``a dog``, with the verb that agrees.

    One noun phrase is changed, drawn among those where the result is sure to be English. Subjects with which more than
    one verb, a relative clause or a pronoun would have to agree are skipped, and so are phrases with ``the`` or a
    possessive, which may be of what cannot be counted (``the snow``).
    """
    sentence = _Sentence(caption)
    candidates = [
        changes
        for number, phrase in enumerate(phrases.noun_phrases(caption, sentence.tags))
        if (changes := sentence.changes(phrase, first=number == 0))
    ]
    if not candidates:
        raise Unchanged("no number that can surely be changed")
    return rewritten(caption, draws.choice(draws.choice(candidates)))


class _Sentence:
    def __init__(self, caption: Caption) -> None:
        self.caption = caption
        self.words = caption.lower
        self.tags = phrases.mended_tags(caption)
        self.verbs = phrases.finite_verbs(caption, self.tags)

    def changes(self, phrase: phrases.NounPhrase, *, first: bool) -> list[Change]:
        """Return the ways to change the number of a phrase; none where no way is sure to be English."""
        noun, at = self.words[phrase.head], phrase.determiner
        determiner = "" if at is None else self.words[at]
        if phrase.plural and at is not None and (others := _neighbours(determiner)):
            return [{(at, at): other} for other in others]
        if self.tags[phrase.head] not in ("NN", "NNS") or noun in _NO_COUNT or noun in english.PLURAL_ONLY:
            return []
        after = phrase.head + 1
        if self._is_possessive(phrase.head) or self.words[after : after + 1] in _RELATIVE:
            return []
        if self.tags[after : after + 1] == ["JJ"]:
            return []  # a tagger may have missed an adjective: a rickety narrow bridge
        # a tagger may have missed a plural, or a verb, too
        looks_plural = noun.endswith("s") and not noun.endswith(("ss", "us"))
        if not phrase.plural and at is not None and determiner in ("a", "an", "one") and not looks_plural:
            verb = self._verb(phrase, english.for_many, ("VBZ", "is", "was"), first)
            change = {(at, at): "two", (phrase.head, phrase.head): english.plural(noun)}
            return [] if verb is None else [change | verb]
        one = english.singular(noun)
        if one is None or not phrase.plural or (determiner and determiner not in phrases.SEVERAL):
            return []
        if at is None and self._unsure(phrase):
            return []
        verb = self._verb(phrase, english.for_one, ("VBP", "are", "were"), first)
        if verb is None:
            return []
        words = [*self.words[phrase.first : phrase.head], one]
        article = english.article_before(words[0])
        change = {(phrase.head, phrase.head): one}
        if at is not None:
            change[at, at] = article
        else:
            change[phrase.first, phrase.first] = f"{article} {words[0]}"
        return [change | verb]

    def _is_possessive(self, place: int) -> bool:
        end = self.caption.words[place].end
        return self.caption.text[end : end + 3].lstrip()[:1] in ("'", "’")

    def _unsure(self, phrase: phrases.NounPhrase) -> bool:
        """Return whether a plural without an article may be a verb, or cannot become a singular."""
        if any(tag.startswith("NN") for tag in self.tags[phrase.first : phrase.head]):
            return True
        if phrase.first == 0:
            return False
        before = self.tags[phrase.first - 1]
        if phrase.first == 1 and before == "VBG":  # racing dogs
            return True
        return not before.startswith(("IN", "VB")) or self.words[phrase.first - 1] in _OF_SEVERAL

    def _verb(
        self, phrase: phrases.NounPhrase, agreeing: Callable[[str], str], forms: tuple[str, ...], first: bool
    ) -> Change | None:
        """Return the changed verb that agrees with a phrase; None where that is not sure."""
        cut = bisect_left(self.verbs, phrase.start)
        before, after = self.verbs[max(cut - 1, 0) : cut], self.verbs[cut : cut + 2]
        if before and self.words[before[0]] in phrases.BE and before[0] == phrase.start - 1:
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
        if "that" in between or ("and" in between and agreeing is english.for_one):
            return None
        return self._agreed(after[0], agreeing, forms)

    def _agreed(self, verb: int, agreeing: Callable[[str], str], forms: tuple[str, ...]) -> Change:
        if self.tags[verb] in forms or self.words[verb] in forms:
            return {(verb, verb): agreeing(self.words[verb])}
        return {}


def _neighbours(number: str) -> list[str]:
    """Return the numbers one below and one above, from two on, written as it is; none where it is no such number."""
    if number in phrases.NUMBERS:
        place = phrases.NUMBERS.index(number)
        return [*phrases.NUMBERS[max(place - 1, 0) : place], *phrases.NUMBERS[place + 1 : place + 2]]
    if not (number.isascii() and number.isdecimal()) or number[0] == "0" or not 2 <= int(number[:3]) <= _MOST:
        return []
    return [str(other) for other in (int(number) - 1, int(number) + 1) if other > 1]
