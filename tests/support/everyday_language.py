"""A language of a few dozen everyday words: a tagger that looks them up, and a net of their meanings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diptych.data.language import Language, Synset, WordNet, words_of
from diptych.data.language.wordnet import PART_ORDER

_TAGS = {
    "DT": "a an the this",
    "CD": "one two three 2 3",
    "CC": "and or",
    "IN": "in on with of at between through while",
    "JJ": "red blue black white small large little tiny wooden hot old green happy young several orange",
    "JJR": "larger smaller happier",
    "JJS": "largest",
    "NN": "dog cat man woman boy ball street grass table car hat orchid apple path water group stream front side "
    "tennis player person picture plant poodle thing water bus house child hand",
    "NNS": "dogs cats men women boys balls streets people cars hats orchids plants cookies apples children players "
    "knives glasses houses sheep",
    "NNP": "Paris Rex",
    "VBZ": "is runs sits has watches",
    "VBP": "are run sit have",
    "VBG": "running sitting wearing holding",
    "VBN": "parked seen",
    "MD": "can",
    "EX": "there",
    "PRP$": "his its",
    "TO": "to",
}


class DictTagger:
    """Tags of a table, nouns for every other word; capitals do not matter but for names."""

    name, fingerprint = "dict tagger", "dict-tagger"

    def __init__(self, tags: Mapping[str, str] = _TAGS) -> None:
        self._tags = {word: tag for tag, words in tags.items() for word in words.split()}

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """A tag for each token."""
        return [[self._tag(token) for token in sentence] for sentence in sentences]

    def _tag(self, token: str) -> str:
        if not token[0].isalnum():
            return token
        return self._tags.get(token) or self._tags.get(token.lower(), "NN")


class DictWordNet(WordNet):
    """Synsets by name, ``lemma``s, what they are kinds of, and their part of speech by the name's end (``dog.n``)."""

    def __init__(
        self, members: Mapping[str, Sequence[str]], above: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        parts = dict(zip("nvar", PART_ORDER, strict=True))
        synsets = [
            Synset(name, parts[name.split(".")[1][0]], lemmas, (above or {}).get(name, ()))
            for name, lemmas in members.items()
        ]
        super().__init__("dict wordnet", "dict-wordnet", synsets)


def everyday() -> Language:
    """The language."""
    members = {
        "entity.n": ["entity"],
        "organism.n": ["organism"],
        "animal.n": ["animal"],
        "vertebrate.n": ["vertebrate"],
        "mammal.n": ["mammal"],
        "carnivore.n": ["carnivore"],
        "canine.n": ["canine", "canid"],
        "pet.n": ["domestic animal"],
        "dog.n": ["dog", "domestic dog", "Canis familiaris"],
        "poodle.n": ["poodle"],
        "airedale.n": ["Airedale"],
        "plant.n": ["plant"],
        "poplar.n": ["poplar"],
        "cookie.n": ["cookie", "cooky", "biscuit"],
        "frump.n": ["frump", "dog"],
        "person.n": ["person", "individual"],
        "male.n": ["male"],
        "man.n": ["man", "adult male"],
        "bachelor.n": ["bachelor"],
        "boy.n": ["male child", "boy"],
        "child.n": ["child", "kid"],
        "street.n": ["street"],
        "grass.n": ["grass"],
        "ball.n": ["ball"],
        "sphere.n": ["sphere", "orb"],
        "glasses.n": ["glasses", "spectacles", "specs"],
        "player.n": ["player", "participant"],
        "tennis player.n": ["tennis player"],
        "orchid.n": ["orchid", "orchidaceous plant"],
        "hat.n": ["hat", "equipment", "headgear"],
        "field.n": ["field", "piece of land"],
        "front.n": ["front", "forepart"],
        "hot dog.n": ["frank", "hot dog"],
        "house.n": ["House of Lords"],
        "house2.n": ["house", "dwelling"],
        "dog.v": ["chase", "dog"],
        "red.a": ["red", "reddish"],
        "large.a": ["large", "big"],
        "small.a": ["small", "little"],
        "happy.a": ["happy", "felicitous"],
        "old.a": ["old", "aged"],
        "hot.a": ["hot", "torrid"],
        "pierce.v": ["pierce", "thrust"],
    }
    above = {
        "organism.n": ["entity.n"],
        "animal.n": ["organism.n"],
        "vertebrate.n": ["animal.n"],
        "mammal.n": ["vertebrate.n"],
        "carnivore.n": ["mammal.n"],
        "canine.n": ["carnivore.n"],
        "pet.n": ["carnivore.n"],
        "dog.n": ["canine.n", "pet.n"],
        "poodle.n": ["dog.n"],
        "airedale.n": ["dog.n"],
        "person.n": ["organism.n"],
        "male.n": ["person.n"],
        "man.n": ["male.n"],
        "bachelor.n": ["man.n"],
        "boy.n": ["male.n"],
        "ball.n": ["entity.n"],
        "sphere.n": ["ball.n"],
        "orchid.n": ["plant.n"],
        "poplar.n": ["plant.n"],
        "tennis player.n": ["player.n"],
        "player.n": ["person.n"],
    }
    return Language("everyday", DictTagger(), DictWordNet(members, above))


def tagged(caption: str) -> list[str]:
    """The tags of a caption's words in that language."""
    return DictTagger().tag([[word.text for word in words_of(caption)]])[0]
