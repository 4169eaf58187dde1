"""A caption as a perturbation sees it: its words, where they stand, and what part of speech they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from diptych.core.errors import DataError, UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, Language, Word, words_of


class Unchanged(Exception):
    """A perturbation cannot change this caption; the message says why, in words that many captions share."""


class Caption:
    """One caption.

    Args:
        tags: Penn treebank tag of each of its words; None where nobody asked for them.
    """

    def __init__(
        self,
        text: str,
        id: str = "",
        tags: Sequence[str] | None = None,
        language: Language | None = None,
    ) -> None:
        self.text = text
        self.id = id
        self._tags = tags
        self._language = language

    @cached_property
    def words(self) -> list[Word]:
        """Its words in order, marks left out; ``words[i].text``."""
        return words_of(self.text)

    @property
    def tags(self) -> Sequence[str]:
        """The tag of each word."""
        if self._tags is None:
            raise UsageError("a caption without tags", "declare needs={'tags'}")
        if len(self._tags) != len(self.words):
            raise DataError(
                f"caption {self.id!r} has {len(self.words)} words and {len(self._tags)} tags: {self.text[:80]!r}",
                "take its tags from diptych.data.language.tagged.tag_captions",
            )
        return self._tags

    @property
    def language(self) -> Language:
        """Where meanings are looked up."""
        if self._language is None:
            raise UsageError("a caption without a language", "declare needs={'wordnet'}")
        return self._language

    def places(self, tags: frozenset[str]) -> list[int]:
        """The places of words with one of ``tags``."""
        return [place for place, tag in enumerate(self.tags) if tag in tags]

    @property
    def nouns(self) -> list[int]:
        """Places of its nouns."""
        return self.places(NOUN_TAGS)

    @property
    def adjectives(self) -> list[int]:
        """Places of its adjectives."""
        return self.places(ADJECTIVE_TAGS)

    def replaced(self, words: Mapping[int, str]) -> str:
        """The text with other words at some places; all between them stays as it is."""
        parts, end = [], 0
        for place in sorted(words):
            word = self.words[place]
            parts += [self.text[end : word.start], words[place]]
            end = word.end
        return "".join([*parts, self.text[end:]])

    def reordered(self, places: Sequence[int], order: Sequence[int]) -> str:
        """The text with the word of ``order[i]`` at ``places[i]``; marks stay where they are."""
        return self.replaced({to: self.words[of].text for to, of in zip(places, order, strict=True)})
