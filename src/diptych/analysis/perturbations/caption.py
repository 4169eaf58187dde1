"""A caption as a perturbation sees it: its words, where they stand, their parts of speech, and what replaces them."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from diptych.analysis.perturbations.english import article_before, cased_like
from diptych.core.errors import DataError, UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, Language, Word, words_of

Span = tuple[int, int]  # the places of the first and the last of some words that follow one another


class Unchanged(Exception):
    """A perturbation cannot change this caption; the message says why, in words that many captions share."""


class Caption:
    """A caption; ``tags`` are the Penn treebank tags of its words, None where no perturbation needs them."""

    def __init__(
        self, text: str, id: str = "", tags: Sequence[str] | None = None, language: Language | None = None
    ) -> None:
        self.text = text
        self.id = id
        self._tags = tags
        self._language = language

    @cached_property
    def words(self) -> list[Word]:
        return words_of(self.text)

    @cached_property
    def lower(self) -> list[str]:
        return [word.text.lower() for word in self.words]

    @property
    def tags(self) -> Sequence[str]:
        if self._tags is None:
            raise UsageError("a caption without tags", "declare needs={'tags'}")
        if (count := len(self._tags)) != len(self.words):
            what = f"caption {self.id!r} has {len(self.words)} words and {count} tags: {self.text[:80]!r}"
            raise DataError(what, "take its tags from diptych.data.language.tagged.tag_captions")
        return self._tags

    @property
    def language(self) -> Language:
        if self._language is None:
            raise UsageError("a caption without a language", "declare needs={'wordnet'}")
        return self._language

    def places(self, tags: frozenset[str]) -> list[int]:
        return [place for place, tag in enumerate(self.tags) if tag in tags]

    @property
    def nouns(self) -> list[int]:
        return self.places(NOUN_TAGS)

    @property
    def adjectives(self) -> list[int]:
        return self.places(ADJECTIVE_TAGS)

    def between(self, place: int) -> str:
        """Return what stands between a word and the next one."""
        return self.text[self.words[place].end : self.words[place + 1].start]

    def replaced(self, words: Mapping[int, str]) -> str:
        spans = ((self.words[place], word) for place, word in words.items())
        return with_changes(self.text, [(of.start, of.end, word) for of, word in spans])

    def reordered(self, places: Sequence[int], order: Sequence[int]) -> str:
        return self.replaced({to: self.words[of].text for to, of in zip(places, order, strict=True)})


def with_changes(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    """Return ``text`` with ``text[start:end]`` replaced for every (start, end, replacement), which lie apart."""
    parts, last = [], 0
    for start, end, replacement in sorted(changes):
        parts += [text[last:start], replacement]
        last = end
    return "".join([*parts, text[last:]])


def rewritten(caption: Caption, changes: Mapping[Span, str]) -> str:
    """Return the caption with other words in place of some; ``a`` and ``an`` follow them, nothing leaves no blank."""
    words, text = caption.words, caption.text
    edits: list[tuple[int, int, str]] = []
    taken = {place for first, last in changes for place in range(first, last + 1)}
    for (first, last), new in changes.items():
        start, end = words[first].start, words[last].end
        if not new:
            after = words[last + 1].start if last + 1 < len(words) else end
            edits.append((start, after if text[end:after].isspace() else end, ""))
            continue
        edits.append((start, end, cased_like(words[first].text, new)))
        if first and first - 1 not in taken:
            before = words[first - 1]
            if before.text.lower() in ("a", "an") and text[before.end : start].isspace():
                article = article_before(new.split()[0])
                edits.append((before.start, before.end, cased_like(before.text, article)))
    return with_changes(text, edits)
