"""Verbs of the present that agree with one subject or with several, and ``was`` and ``were``."""

from __future__ import annotations

from diptych.analysis.perturbations.english.word_lists import listed

_MANY = {"is": "are", "was": "were", "has": "have", "does": "do", "isn't": "aren't", "wasn't": "weren't"}
_ONE = {many: one for one, many in _MANY.items()}
_E = listed("aches caches canoes hoes shoes tiptoes toes")  # -ches and -oes of verbs that end in e
_ES = ("sses", "xes", "zzes", "shes", "ches", "oes", "focuses")


def for_many(verb: str) -> str:
    """The form for several subjects of one that has a single subject: ``runs`` → ``run``, ``is`` → ``are``.

    >>> [for_many(verb) for verb in ("runs", "is", "watches", "carries", "goes", "lies", "uses", "poses")]
    ['run', 'are', 'watch', 'carry', 'go', 'lie', 'use', 'pose']
    """
    if verb in _MANY:
        return _MANY[verb]
    if not verb.endswith("s") or verb.endswith("ss"):
        return verb
    if verb.endswith("ies"):
        return verb[:-1] if len(verb) < 5 else verb[:-3] + "y"
    return verb[:-2] if verb.endswith(_ES) and verb not in _E else verb[:-1]


def for_one(verb: str) -> str:
    """The form for a single subject of one that has several: ``run`` → ``runs``, ``are`` → ``is``.

    >>> [for_one(verb) for verb in ("run", "are", "watch", "carry", "go", "play")]
    ['runs', 'is', 'watches', 'carries', 'goes', 'plays']
    """
    if verb in _ONE:
        return _ONE[verb]
    if verb.endswith("y") and verb[-2:-1] not in ("a", "e", "o", "u", ""):
        return verb[:-1] + "ies"
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + ("s" if verb.endswith("oo") else "es")
    return verb + "s"
