"""The records of a collection of products, the same for every reader.

A product is an item of a :class:`~diptych.data.collection.Collection`; its record may have

``title``
    its name, one line of plain text;
``attributes``
    name → value, both plain text (``{"colour": "red", "material": "cotton"}``); a name may have several values;
``category_path``
    the names of its category from the root to the most specific, or
``category_paths``
    several such paths, where it is in several places of the tree;
``product``
    the id of the product, where several images show one; without it each item is a product of its own.

Any of them may be missing or empty: shops have such products. Text from shops holds HTML, entities and white
space of all kinds; :func:`plain_text` makes one line of it.
"""

import html
import re
from collections.abc import Mapping
from typing import Any

from diptych.core.fingerprint import fingerprint

# Deeper paths are refused: no tree of a shop has so many levels, and a node holds the names of all above it.
MAX_LEVELS = 50

_OPENING = re.compile(r"<(script|style)\b|<!--|/\*", re.IGNORECASE | re.ASCII)
_CLOSING = {
    "script": re.compile(r"</script\s*>", re.IGNORECASE | re.ASCII),
    "style": re.compile(r"</style\s*>", re.IGNORECASE | re.ASCII),
    "<!--": re.compile("-->"),
    "/*": re.compile(r"\*/"),
}
_LONG_NUMBER = re.compile(r"&#[0-9]{100,};?")  # of no character; Python refuses to read so many digits
# Text that was written as HTML so many times over is read to the end.
_ROUNDS = 8
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u200e\u200f\ufeff\ud800-\udfff]")
_PLAIN_ID = re.compile(r"[A-Z0-9][A-Z0-9_-]{0,79}")
_RESERVED = re.compile(r"CON|PRN|AUX|NUL|COM[0-9]|LPT[0-9]")  # no file of that name on Windows


def plain_text(text: str) -> str:
    """Return one line of text: tags, scripts, styles and comments gone, entities read, white space made single blanks.

    ``3 < 5`` and ``<3`` stay: a tag begins with a letter. Plain text stays as it is, so that it may be called
    again. The time is in proportion to the text, whatever that holds.
    """
    for _ in range(_ROUNDS):  # "&lt;b&gt;" is a tag in some feeds, written twice
        if "<" not in text and "&" not in text and "/*" not in text:
            break
        before = text
        text = html.unescape(_LONG_NUMBER.sub("\ufffd", _TAG.sub(" ", _without_hidden(text))))
        if text == before:
            break
    return " ".join(_CONTROL.sub(" ", text).split())


def _without_hidden(text: str) -> str:
    """Return the text without scripts, styles and comments; one that nothing closes stays.

    One expression with ``.*?`` would look for the end of each of a thousand openings anew.
    """
    parts: list[str] = []
    begin = place = 0
    endless: set[str] = set()
    while opening := _OPENING.search(text, place):
        kind, place = (opening[1] or opening[0]).lower(), opening.end()
        closing = None if kind in endless else _CLOSING[kind].search(text, place)
        if closing is None:
            endless.add(kind)
        else:
            parts += (text[begin : opening.start()], " ")
            begin = place = closing.end()
    return "".join((*parts, text[begin:]))


def split_path(text: str) -> tuple[str, ...]:
    """Return the names of a category path as shops write it: ``"Home > Women > Dresses"``.

    Names may hold the separator's character without blanks (``"A>B"`` is one name), commas and ampersands. Empty names
    are dropped.
    """
    return tuple(name for part in text.split(" > ") if (name := plain_text(part)))


def paths_of(record: Mapping[str, Any] | None) -> tuple[tuple[str, ...], ...]:
    """Return the category paths of a product's record, each once, none of them empty."""
    if not record:
        return ()
    given = record.get("category_paths") or ([record["category_path"]] if record.get("category_path") else [])
    paths = (tuple(name for part in path if (name := plain_text(str(part)))) for path in given)
    return tuple(dict.fromkeys(path for path in paths if path))


def attributes_of(record: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """(name, value) of a product's attributes, each once, in their order; those without a value are left out."""
    given = (record or {}).get("attributes") or {}
    found: dict[tuple[str, str], None] = {}
    for name, values in given.items():
        for value in values if isinstance(values, list | tuple) else (values,):
            text = "" if value is None else plain_text(str(value))
            if text:
                found[plain_text(str(name)), text] = None
    return tuple(found)


def picture_name(product_id: str) -> str:
    """Return the name, without an ending, of the file that holds a product's image.

    An id of capital letters, digits, ``_`` and ``-`` is its own name (``B00ABC123``); of any other, what is harmless of
    it and 16 hexadecimal digits of its fingerprint (``red-shoe~1f8c40d2a96be357``). So no name leads out of a folder or
    is too long, and two ids never share one, not even where a file system takes capitals for small letters.
    """
    if _PLAIN_ID.fullmatch(product_id) and not _RESERVED.fullmatch(product_id):
        return product_id
    harmless = re.sub(r"[^A-Za-z0-9_-]+", "-", product_id).strip("-")[:40]
    return f"{harmless}~{fingerprint('picture', product_id)[:16]}"
