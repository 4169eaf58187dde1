"""A WordNet in tables: lemmas that differ in capitals, and irregular forms, its own or the common ones."""

from __future__ import annotations

from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_files import DATABASE_FILES, read_database
from diptych.data.language.wordnet_tables import Entry, Records, Synset, WordNetTables


def net_of(*entries: Entry) -> TableWordNet:
    """Its synsets are those that the entries name, each of its entry's part of speech."""
    parts = {name: entry.part for entry in entries for name in entry.synsets}
    records = Records("made", [Synset(name, part, ()) for name, part in parts.items()], list(entries))
    return TableWordNet(WordNetTables.of(records), "content")


def test_of_lemmas_that_differ_in_capitals_the_one_as_written_comes_first() -> None:
    net = net_of(Entry("Turkey", "noun", ["country"]), Entry("turkey", "noun", ["bird", "flop"]))
    assert net.senses("turkey") == ["bird", "flop", "country"]
    assert net.senses("Turkey") == ["country", "bird", "flop"]
    assert net.senses("TURKEY", "noun") == ["bird", "flop", "country"]


def test_nouns_come_before_verbs_and_adjectives_whatever_the_capitals() -> None:
    net = net_of(
        Entry("Polish", "adjective", ["of Poland"]),
        Entry("Polish", "noun", ["language"]),
        Entry("polish", "verb", ["shine"]),
        Entry("polish", "noun", ["gloss"]),
    )
    assert net.senses("polish") == ["gloss", "language", "shine", "of Poland"]
    assert net.senses("Polish", "adjective") == ["of Poland"]


def test_forms_are_its_own_or_where_it_has_none_the_common_ones() -> None:
    child = Entry("child", "noun", ["child"]), Entry("ox", "noun", ["ox"])
    without, own = net_of(*child), net_of(*child, Entry("ox", "noun", (), ("oxes",)))
    assert (
        list(without.morphy("children", "noun")) == list(without.base_forms("children", "noun")) == ["child"]
    )
    # What NLTK looks up is known to nothing but the WordNet itself.
    assert list(own.morphy("children", "noun")) == [] != list(own.base_forms("children", "noun"))
    assert list(own.morphy("oxes", "noun")) == list(own.base_forms("oxes", "noun")) == ["ox"]


def test_the_database_counts_words_in_hexadecimal() -> None:
    words = [f"word{number}" for number in range(17)]
    files = dict.fromkeys(DATABASE_FILES, "")
    files["data.noun"] = f"00000001 03 n 11 {' 0 '.join(words)} 0 000 | many\n"
    files["index.noun"] = "".join(f"{word} n 1 0 1 0 00000001\n" for word in words)
    records = read_database(lambda name: files[name].encode())
    assert records.synsets == [Synset("word0.n.01", "noun", words, [])]
