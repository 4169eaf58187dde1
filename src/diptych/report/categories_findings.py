"""What a reader takes away from an evaluation of models, each sentence computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.report.categories_tables import best_value, percent, setting_name
from diptych.report.intent_page import Headline

_MEASURE = "mAP@10"

Numbers = Mapping[str, Any]


def evaluation_headlines(settings: Mapping[str, Numbers]) -> list[Headline]:
    """The best model of every setting."""
    shown = []
    for name, said in settings.items():
        highest = best_value(said, "P@1")
        best = [row for row in said["table"] if row["values"]["P@1"]["mean"] == highest]
        value = best[0]["values"]["P@1"]
        who = best[0]["label"] if len(best) == 1 else f"{len(best)} models"
        shown.append(
            Headline(
                f"P@1, {setting_name(name)}",
                f"{percent(highest)} %",
                f"{who}; chance {percent(value['chance'])} %",
            )
        )
    return shown


def evaluation_findings(setting: str, said: Numbers) -> list[str]:
    """Of one setting: the best model, and which differ from the baseline."""
    table = said["table"]
    highest = best_value(said, _MEASURE)
    best = [row for row in table if row["values"][_MEASURE]["mean"] == highest]
    names, value = _listed([row["label"] for row in best]), best[0]["values"][_MEASURE]
    verb = "has" if len(table) == 1 else "is best:" if len(best) == 1 else "are best:"
    text = f"{setting_name(setting).capitalize()}: {names} {verb} {_MEASURE} of {percent(highest)} %"
    if value["low"] is not None and len(best) == 1:
        text += f" ({percent(value['low'])}–{percent(value['high'])})"
    if len(best) == 1:
        text += f"; {percent(best[0]['products']['R@1']['mean'])} % of products find their own category first"
    return [" ".join([f"{text}.", *_tested(said)])]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _tested(said: Numbers) -> list[str]:
    """How many models differ from the baseline, by the one measure."""
    labels = {row["model"]: row["label"] for row in said["table"]}
    mine = [one for one in said["differences"] if one["measure"] == _MEASURE]
    if not mine:
        return []
    base = labels[said["baseline"]]
    parts = []
    for verdict, what in (("worse", "worse than"), ("better", "better than")):
        names = [labels[one["run"]] for one in mine if one["verdict"] == verdict]
        if names:
            parts.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {what} {base}")
    undecided = [labels[one["run"]] for one in mine if not one["verdict"]]
    if undecided:
        parts.append(f"between {base} and {_listed(undecided)} these categories do not decide")
    sentence = "; ".join(parts)
    return [f"{sentence[0].upper()}{sentence[1:]} (corrected tests over {said['categories']:,} categories)."]
