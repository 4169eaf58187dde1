"""The forms in which a WordNet is passed on, and how one is found in a folder.

- WordNet's own database files, in a folder or a zip: Princeton's WordNet in NLTK's data (``corpora/wordnet``);
- Open English WordNet as two gzipped files of JSON lines, ``oewn_synsets.jsonl.gz`` and ``oewn_lemmas.jsonl.gz``;
- Open English WordNet's release as JSON: a folder of ``entries-*.json`` and a file of synsets per domain;
- WN-LMF, an XML file, often gzipped: Open English WordNet's other release, and the form of all wordnets of the
  Global WordNet Association.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import ParseError

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.data.language.nltk_folder import find_resource, read_member
from diptych.data.language.open_english import LEMMAS, SYNSETS, read_json_lines, read_json_release
from diptych.data.language.wordnet_database import DATABASE_FILES, read_database
from diptych.data.language.wordnet_lmf import read_lmf
from diptych.data.language.wordnet_records import Records

__all__ = ["WORDNET", "WordNetFiles", "wordnet_files"]

WORDNET = "corpora/wordnet"
"""Princeton's WordNet in NLTK's data."""


@dataclass(frozen=True)
class WordNetFiles:
    """Where a WordNet is and in which form.

    Attributes:
        path: as it was named.
        form: one of :data:`FORMS`.
        files: all that is read.
    """

    path: Path
    form: str
    files: tuple[Path, ...]

    def fingerprint(self) -> str:
        """Of the files' names and contents."""
        return fingerprint(self.form, *((file.name, fingerprint_file(file)) for file in self.files))

    def read(self) -> Records:
        """All of it.

        Raises:
            StorageError: a file is damaged.
            DataError: it is not of that form.
        """
        try:
            return FORMS[self.form](self)
        except (OSError, EOFError, zlib.error, ValueError, ParseError) as error:
            raise StorageError(f"{self.path}: the WordNet cannot be read: {error}", "get it again") from None
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise DataError(
                f"{self.path} holds no WordNet as {self.form}: {error!r}", "get it again"
            ) from None


def wordnet_files(path: Path | str) -> WordNetFiles:
    """Find a WordNet in a folder (one of NLTK data, too), or take the file that it is.

    Raises:
        UsageError: there is none there.
    """
    path = Path(path)
    inner = find_resource([path], WORDNET) or path
    if inner.suffix == ".zip" and _holds_database(inner):
        return WordNetFiles(path, "database", (inner,))
    for form, files in (
        ("database", [inner / name for name in DATABASE_FILES]),
        ("JSON lines", [inner / LEMMAS, inner / SYNSETS]),
    ):
        if all(file.is_file() for file in files):
            return WordNetFiles(path, form, tuple(files))
    if any(path.glob("entries-*.json")):
        return WordNetFiles(path, "JSON", tuple(sorted(path.glob("*.json"))))
    found = [path] if path.is_file() else sorted([*path.glob("*.xml"), *path.glob("*.xml.gz")])
    if len(found) == 1 and found[0].name.endswith((".xml", ".xml.gz")):
        return WordNetFiles(path, "WN-LMF", tuple(found))
    raise UsageError(
        f"{path} {'holds no WordNet' if path.exists() else 'does not exist'}",
        "give a folder with WordNet's database files (data.noun, index.noun, noun.exc, …), with Open English "
        f"WordNet's JSON files or {LEMMAS} and {SYNSETS}, or one WN-LMF file (.xml, .xml.gz); unpack other zips",
    )


def _holds_database(zipped: Path) -> bool:
    """Whether a zip has WordNet's database; a damaged one may, and is found out when it is read."""
    if not zipfile.is_zipfile(zipped):
        return zipped.is_file()
    with zipfile.ZipFile(zipped) as archive:
        return f"{zipped.stem}/{DATABASE_FILES[0]}" in archive.namelist()


def _database(found: WordNetFiles) -> Records:
    where = found.files[0] if found.files[0].suffix == ".zip" else found.files[0].parent
    return read_database(lambda name: read_member(where, name))


FORMS: Mapping[str, Callable[[WordNetFiles], Records]] = {
    "database": _database,
    "JSON lines": lambda found: read_json_lines(*found.files),
    "JSON": lambda found: read_json_release(found.files),
    "WN-LMF": lambda found: read_lmf(found.files[0]),
}
"""How each form is read."""
