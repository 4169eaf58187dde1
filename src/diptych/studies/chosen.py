"""What a study is run with: what a person chose, and what its setting gives where nothing was chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.studies.rows import Choices, setting_for
from diptych.studies.study import SettingName, Study
from diptych.studies.trained import Collections
from diptych.studies.ways import MEASURE

if TYPE_CHECKING:
    from diptych.data.collection import Collection


def chosen_for(study: Study, choices: Choices) -> tuple[Choices, SettingName, dict[str, Collection]]:
    """The choices with what the setting gives where nothing was chosen, the setting, and the collections of
    a study of several.
    """
    if not study.several:
        if choices.collections:
            raise UsageError(f"{study.name} is of one collection", "give one --data")
        given = Collections(choices).given
        return choices, setting_for(study, None if given is None else given.name, choices.setting), {}
    asked = choices.setting
    if asked is None and not choices.collections:
        asked = "quick"
    sections = choices.collections
    if not sections and asked is not None:
        sections = tuple(study.settings[setting_for(study, None, asked)].collections.items())
    if not sections:
        raise UsageError(
            f"no data given for {study.name}", "give collections: --data NAME=DATASET, repeatable"
        )
    named = Collections(choices).named(sections)
    # The paper's own setting where one of them is the paper's.
    printed = [name for name in named if study.printed_keys(name)]
    setting = setting_for(study, next(iter([*printed, *named])), asked)
    own = study.settings[setting]
    measured = {f"{MEASURE}.{key}": value for key, value in own.measure.items()}
    values = {**own.given, **measured, **choices.values}
    return replace(choices, values=values, collections=sections), setting, named
