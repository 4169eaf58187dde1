"""How a row is made: by a recipe, from what a person gives, as a head on its base's rows, as a search of them,
as its base adapted; with all the others, where they are models of a catalogue; or not at all, where the captions
themselves are measured, or a log.

What a person sets for one way has no meaning for the others: ``--set sparsify.training.epochs=40`` reaches the
heads of a study, ``--set search.items=20000`` its searches, ``--set adapt.epochs=9`` what is adapted, ``--set
dense=ENCODER`` the row that can be given, ``--set measure.words=FILE`` how heads are measured; every other key
the recipes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from diptych.core.errors import MissingExtraError, UnknownNameError, UsageError
from diptych.studies.study import Row, Setting, Study

Way = Literal["recipe", "given", "head", "search", "adapted", "captions", "log", "catalogue"]
Section = Literal["sparsify", "search", "adapt"]

SECTIONS: tuple[Section, ...] = ("sparsify", "search", "adapt")
"""Attributes of rows and settings that stand in a recipe's place, and what their keys begin with in --set."""


_LIBRARIES = {"pisa": "pyterrier_pisa", "seismic": "seismic"}
MEASURE = "measure"
"""What the keys of measuring begin with in --set."""

_HEADS_BY = ("words",)


def way_of(row: Row, values: Mapping[str, Any]) -> Way:
    """How a row is made, with what a person has set."""
    if row.captions_alone or row.log_alone:
        return "captions" if row.captions_alone else "log"
    if row.catalogue_alone:
        return "catalogue"
    if row.search is not None:
        return "search"
    if row.sparsify is not None:
        return "head"
    if row.adapt is not None:
        return "adapted"
    return "given" if row.given and row.given in values else "recipe"


def given_keys(study: Study) -> set[str]:
    """The keys by which a person may give a row of the study."""
    return {row.given for row in (*study.rows, *study.bases) if row.given}


def not_of_recipes(study: Study, key: str) -> bool:
    """Whether a key is about rows that have no recipe."""
    rows = (*study.rows, *study.bases)
    has = {name for name in SECTIONS for row in rows if getattr(row, name) is not None}
    measured = [MEASURE] if has or study.measured_by else []
    return key.partition(".")[0] in {*has, *measured} or key in given_keys(study)


def measuring_of(values: Mapping[str, Any], known: Sequence[str] = _HEADS_BY) -> dict[str, Any]:
    """What a person set about measuring; ``known`` are the keys that there are, those of heads by default."""
    own = _below(MEASURE, values)
    for key in own:
        if key not in known:
            raise UnknownNameError("key of measure", key, known)
    return own


def section_of(row: Row, chosen: Setting, values: Mapping[str, Any], name: Section) -> dict[str, Any]:
    """A row's dotted options: the setting's, the row's, the setting's for that row, then what a person sets."""
    apart = getattr(row, name) or {}
    own = _below(name, values)
    for key in own.keys() & apart.keys():
        raise UsageError(
            f"{name}.{key} is what sets {row.name} apart: {apart[key]}",
            "leave it out, and choose rows with --rows",
        )
    return {**getattr(chosen, name), **apart, **chosen.changes.get(row.name, {}), **own}


def _below(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a person set in a section, by the rest of the keys."""
    if section in values:
        raise UsageError(f"{section} is a section, not a value", f"set its keys: --set {section}.KEY=VALUE")
    start = f"{section}."
    return {key.removeprefix(start): value for key, value in values.items() if key.startswith(start)}


def refuse_recipe_keys(study: Study, row: Row, values: Mapping[str, Any]) -> None:
    """See that nothing is set about the training of a row that is given."""
    for key in values:
        if not not_of_recipes(study, key):
            raise UsageError(
                f"{key} is about the training of {row.name}, which is given ({row.given}={values[row.given]})",
                f"leave {key} out, or leave {row.given} out to have {row.name} trained",
            )


def missing_library(engine: str) -> str:
    """What an engine needs and is not installed, with its pip line; empty when nothing is missing."""
    library = _LIBRARIES.get(engine)
    if library is None or importlib.util.find_spec(library) is not None:
        return ""
    return str(MissingExtraError(library, "engines", f"the {engine} engine"))
