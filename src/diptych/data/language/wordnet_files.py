"""The forms in which a WordNet is passed on, and how one is found in a folder.

- Database files (``wndb(5WN)``) in a folder or a zip, as NLTK's data have Princeton's and Open English WordNet;
- Open English WordNet as two gzipped files of JSON lines, ``oewn_synsets.jsonl.gz`` and ``oewn_lemmas.jsonl.gz``;
- WN-LMF, the XML of the Global WordNet Association, often gzipped, which wn reads.

NLTK's own reader of the database keeps what is above a synset in a set, so that the order, on which draws depend,
changes from process to process.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from tempfile import NamedTemporaryFile

from diptych.core.errors import StorageError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import file_errors, open_bytes, read_jsonl
from diptych.data.language.nltk_tagger import find_resource, read_member
from diptych.data.language.wordnet import PART_ORDER, PartOfSpeech, Synset, WordNet

# Princeton's WordNet in NLTK's data.
WORDNET = "corpora/wordnet"

_OPEN_ENGLISH = "Open English WordNet"
_SYNSETS, _LEMMAS = "oewn_synsets.jsonl.gz", "oewn_lemmas.jsonl.gz"
# By WordNet's letters; ``s`` is a satellite, an adjective that clusters around another one.
_PARTS: Mapping[str, PartOfSpeech] = dict(zip("nvars", (*PART_ORDER, "adjective"), strict=True))
# Instances (Paris) count as a kind of what they are instances of (capital).
_ABOVE = frozenset({"hypernym", "instance_hypernym", "@", "@i"})
_DATABASE: Mapping[str, PartOfSpeech] = dict(zip(("noun", "verb", "adj", "adv"), PART_ORDER, strict=True))
_DATABASE_FILES = [name for part in _DATABASE for name in (f"data.{part}", f"index.{part}", f"{part}.exc")]
_VERSION = re.compile(r"WordNet (\d[\d.]*\+?) Copyright", re.IGNORECASE)
_MARK = re.compile(r"\([a-z]+\)$")  # where an adjective may stand: galore(ip)


class _Content:
    def __init__(self, title: str) -> None:
        self.title = title
        self.synsets: list[Synset] = []
        self.senses: list[tuple[str, PartOfSpeech, list[str]]] = []
        self.forms: dict[PartOfSpeech, dict[str, list[str]]] = {part: {} for part in PART_ORDER}

    def irregular(self, form: str, lemma: str, part: PartOfSpeech) -> None:
        self.forms[part].setdefault(form.lower(), []).append(lemma.lower())


def _read_database(read: Callable[[str], bytes]) -> _Content:
    """Read Princeton's files; synsets are named as NLTK names them, ``dog.n.01``."""
    content = _Content("WordNet")
    for file, part in _DATABASE.items():
        senses = {}
        for line in _lines(read(f"index.{file}")):  # dog n 2 1 @ 2 1 02084071 10114209
            lemma, _, count, *rest = line.split()
            senses[lemma] = rest[-int(count) :]
        data = read(f"data.{file}")
        if version := _VERSION.search(data[:4096].decode(errors="replace")):
            content.title = f"WordNet {version[1]}"
        names, found = {}, []
        for line in _lines(data):  # 02084071 05 n 01 dog 0 001 @ 02083346 n 0000 | a member of …
            offset, _, kind, count, *rest = line.partition("|")[0].split()
            end = 2 * int(count, 16)
            lemmas, pointers = rest[:end:2], rest[end + 1 : end + 1 + 4 * int(rest[end])]
            first = lemmas[0].lower()
            names[offset] = f"{first}.{kind}.{senses[first].index(offset) + 1:02d}"
            above = [to for symbol, to in zip(pointers[::4], pointers[1::4], strict=True) if symbol in _ABOVE]
            found.append((offset, [_plain(_MARK.sub("", lemma)) for lemma in lemmas], above))
        content.synsets += [
            Synset(names[offset], part, lemmas, [names[one] for one in above])
            for offset, lemmas, above in found
        ]
        content.senses += [(_plain(lemma), part, [names[one] for one in of]) for lemma, of in senses.items()]
        for line in _lines(read(f"{file}.exc")):
            form, *lemmas = map(_plain, line.split())
            for lemma in lemmas:
                content.irregular(form, lemma, part)
    return content


def _plain(word: str) -> str:
    return word.replace("_", " ")


def _lines(text: bytes) -> Iterator[str]:
    """Yield all but the licence at the top, whose lines begin with two blanks."""
    return (line for line in text.decode().splitlines() if line and not line.startswith(" "))


def _read_json_lines(folder: Path) -> _Content:
    """Read a line per lemma (``l``, synsets by part in ``s``) and per synset (``id``, ``p``, members ``m``, ``h``)."""
    content = _Content(_OPEN_ENGLISH)
    for _, value in read_jsonl(folder / _SYNSETS):
        content.synsets.append(Synset(value["id"], _PARTS[value["p"]], value["m"], value.get("h", ())))
    for _, value in read_jsonl(folder / _LEMMAS):
        content.senses += [(value["l"], _PARTS[letter], names) for letter, names in value["s"].items()]
    return content


def _read_lmf(path: Path) -> _Content:
    """Read one lexicon through wn; what is no noun, verb, adjective or adverb is left out."""
    lmf = require("wn.lmf", purpose="reading WN-LMF")
    with NamedTemporaryFile() as plain, open_bytes(path) as file:
        copyfileobj(file, plain)
        plain.flush()
        try:
            (lexicon,) = lmf.load(plain.name, None)["lexicons"]
        except lmf.LMFError as error:
            raise ValueError(str(error)) from None
    content = _Content(f"{lexicon['label']} {lexicon['version']}")
    lemma_of = dict[str, str]()  # by the ids of entries and of senses: a synset's members are either
    listed = dict[str, list[str]]()  # of synsets that do not list theirs
    for entry in lexicon["entries"]:
        lemma, part = entry["lemma"]["writtenForm"], _PARTS.get(entry["lemma"]["partOfSpeech"])
        senses = entry.get("senses", ())
        names = [sense["synset"] for sense in senses]
        lemma_of |= dict.fromkeys([entry["id"], *(sense["id"] for sense in senses)], lemma)
        for name in names:
            listed.setdefault(name, []).append(lemma)
        if part is not None:
            content.senses.append((lemma, part, names))
            for form in entry.get("forms", ()):
                content.irregular(form["writtenForm"], lemma, part)
    for synset in lexicon["synsets"]:
        if (part := _PARTS.get(synset["partOfSpeech"])) is not None:
            members = [lemma_of[id] for id in synset.get("members", ())] or listed[synset["id"]]
            above = [one["target"] for one in synset.get("relations", ()) if one["relType"] in _ABOVE]
            content.synsets.append(Synset(synset["id"], part, members, above))
    return content


def open_wordnet(path: Path | str) -> WordNet:
    """Read a WordNet in a folder (one of NLTK data, too) or a file, in any of its forms."""
    path = Path(path)
    inner = find_resource([path], WORDNET) or path
    zipped = inner.suffix == ".zip" and inner.is_file()
    read: Callable[[], _Content]
    if zipped or all((inner / name).is_file() for name in _DATABASE_FILES):
        files = [inner] if zipped else [inner / name for name in _DATABASE_FILES]
        read = partial(_read_database, partial(read_member, inner))
    elif all((path / name).is_file() for name in (_SYNSETS, _LEMMAS)):
        files, read = [path / _SYNSETS, path / _LEMMAS], partial(_read_json_lines, path)
    elif path.name.endswith((".xml", ".xml.gz")) and path.is_file():
        files, read = [path], partial(_read_lmf, path)
    else:
        raise UsageError(
            f"{path} {'holds no WordNet' if path.exists() else 'does not exist'}",
            "give a folder with WordNet's database files (data.noun, index.noun, noun.exc, …) or with "
            f"{_LEMMAS} and {_SYNSETS}, or a WN-LMF file (.xml, .xml.gz)",
        )
    with file_errors(path, StorageError, "get it again", "a WordNet"):
        content = read()
        forms = content.forms if any(content.forms.values()) else None
        key = fingerprint(*((file.name, fingerprint_file(file)) for file in files))
        return WordNet(content.title, key, content.synsets, content.senses, forms)
