"""A language whose depths and synonyms are easily counted by hand, for what counts them."""

from __future__ import annotations

from everyday_language import DictTagger, DictWordNet

from diptych.data.language import Language, words_of

_TAGS = {
    "DT": "a an the this",
    "CD": "three two 2",
    "CC": "and",
    "IN": "in on of with",
    "JJ": "red small happy hot several large old",
    "JJR": "larger",
    "JJS": "largest",
    "NN": "dog man boy grass hat front tennis player street",
    "NNS": "dogs boys hats cats",
    "VBZ": "is",
    "VBP": "run",
    "VBG": "running wearing sitting",
}

_MEMBERS = {
    "entity.n": ["entity"],
    "organism.n": ["organism"],
    "animal.n": ["animal"],
    "canine.n": ["canine", "canid"],
    "dog.n": ["dog", "domestic dog", "Canis familiaris"],
    "poodle.n": ["poodle"],
    "frump.n": ["frump", "dog"],
    "person.n": ["person", "individual"],
    "male.n": ["male"],
    "man.n": ["man", "adult male"],
    "boy.n": ["male child", "boy"],
    "player.n": ["player", "participant"],
    "tennis player.n": ["tennis player"],
    "grass.n": ["grass"],
    "hat.n": ["hat"],
    "front.n": ["front"],
    "hot dog.n": ["hot dog"],
    "dog.v": ["chase", "dog"],
    "red.a": ["red", "reddish"],
    "small.a": ["small", "little"],
    "happy.a": ["happy"],
    "hot.a": ["hot", "torrid"],
}

_ABOVE = {
    "organism.n": ["entity.n"],
    "animal.n": ["organism.n"],
    "canine.n": ["animal.n"],
    "dog.n": ["canine.n"],
    "poodle.n": ["dog.n"],
    "person.n": ["organism.n"],
    "male.n": ["person.n"],
    "man.n": ["male.n"],
    "boy.n": ["male.n"],
    "player.n": ["person.n"],
    "tennis player.n": ["player.n"],
}


def counted() -> Language:
    """The language: a dog is 4 steps below the root, and so are a man, a boy and a tennis player."""
    return Language("counted", DictTagger(_TAGS), DictWordNet(_MEMBERS, _ABOVE))


def tagged(caption: str) -> list[str]:
    """The tags of a caption's words in that language."""
    return DictTagger(_TAGS).tag([[word.text for word in words_of(caption)]])[0]
