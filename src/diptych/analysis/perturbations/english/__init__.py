"""Forms of English words: plurals, articles, comparison and verbs that agree, as far as captions need them."""

from diptych.analysis.perturbations.english.adjectives import compared
from diptych.analysis.perturbations.english.articles import article_before
from diptych.analysis.perturbations.english.nouns import PLURAL_ONLY, UNCOUNTED, plural, singular
from diptych.analysis.perturbations.english.verbs import for_many, for_one

__all__ = [
    "PLURAL_ONLY",
    "UNCOUNTED",
    "article_before",
    "compared",
    "for_many",
    "for_one",
    "plural",
    "singular",
]
