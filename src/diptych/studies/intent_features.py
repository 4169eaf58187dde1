"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, features and their importance.

diptych study run intent.table-6.7                                   needs no data: what is declared
diptych study run intent.figure-6.6 --quick
diptych study run intent.figure-6.6 --data LOG                       the folder that diptych intent ingest wrote

Which features there are: at once; and what each is worth to a random forest: half a minute on generated scenes,
minutes on a log. Expect all fifteen features of Table 6.7 as they are printed, static ones to have all importance at
step 0 and less from then on, and the page sequence score first on scenes.
"""

from __future__ import annotations

from collections.abc import Sequence

from diptych.studies.claims import Check, Claim, Finding, all_of, missing
from diptych.studies.evidence import Evidence
from diptych.studies.intent_figures import importance_bars
from diptych.studies.intent_predicting import STATIC, Declared, Importance
from diptych.studies.intent_prediction_checks import falls
from diptych.studies.intent_rows import log_row
from diptych.studies.intent_settings import DECLARED, PREDICTED_BY, PREDICTING
from diptych.studies.log_checks import Place, between, highest, known
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study

_TABLE = published_table("intent", "table-6.7")
_FEATURES = {str(row.config): row.row for row in _TABLE.rows}
_DYNAMIC = ("dwell-deviation", "dwell-mean", "page-sequence-score")
_STATIC = ("week-day", "start-hour", "channel", "device", "device-rate")
_HISTORY = ("orders", "days-since-purchase")
_ALL, _FLOAT = 100.0, 1e-6
_STEPS = tuple(f"at step {step}" for step in (0, 1, 5, 10))


def all_rows_with(given: dict[str, float], column: str, value: float, what: str) -> Check:
    """Every feature that has the ``given`` marks has ``value`` in a column."""

    def check(evidence: Evidence) -> list[Finding]:
        wrong, seen = [], 0
        for name in _FEATURES:
            found = known(evidence, [(name, key) for key in (*given, column)])
            if len(found) <= len(given):
                return [missing(what, name)]
            if all(found[name, key] == wanted for key, wanted in given.items()):
                seen += 1
                wrong += [name] if found[name, column] != value else []
        detail = f"{seen - len(wrong)} of {seen}" + (f"; not {', '.join(wrong)}" if wrong else "")
        return [Finding(what, not wrong, detail, float(-len(wrong)))]

    return check


def mean_is_above(setting: str, first: Sequence[str], others: Sequence[str], what: str) -> Check:
    """Each of the first features is worth more than each of the others."""

    def check(evidence: Evidence) -> list[Finding]:
        places = [(name, setting) for name in (*first, *others)]
        found = known(evidence, places)
        if len(found) < len(places):
            return [missing(what, *(name for name, _ in places if (name, setting) not in found))]
        least = min(first, key=lambda name: found[name, setting])
        most = max(others, key=lambda name: found[name, setting])
        apart = found[least, setting] - found[most, setting]
        detail = f"{least} {found[least, setting]:.1f} %, {most} {found[most, setting]:.1f} %"
        return [Finding(what, apart > 0, detail, apart)]

    return check


def _of(setting: str, names: Sequence[str]) -> list[Place]:
    return [(name, setting) for name in names]


_SET = (
    Claim(
        "baseline",
        "The baseline's session features are all dynamic",
        all_rows_with(
            {"baseline": 1.0, "history": 0.0}, "dynamic", 1.0, "session features of the baseline are dynamic"
        ),
        "Section 6.5.2: “the baseline feature set comprises four dynamic features”",
    ),
    Claim(
        "extra",
        "The features that the extended set adds for anonymous visitors are all static",
        all_rows_with({"baseline": 0.0, "history": 0.0}, "dynamic", 0.0, "added session features are static"),
        "Section 6.5.2: “five extra features”",
    ),
    Claim(
        "history",
        "Features of the customer's history are static",
        all_rows_with({"history": 1.0}, "dynamic", 0.0, "history is static"),
        "Section 6.5.1: derived from previous sessions",
    ),
)

_WORTH = (
    Claim(
        "week day",
        "In the anonymous setting the day of the week is the most important feature",
        highest(_of("anonymous", list(_FEATURES)), _of("anonymous", ["week-day"]), "week day first"),
        "Section 6.5.4",
    ),
    Claim(
        "then dynamic",
        "It is followed by deviation and mean of dwell time and the page sequence score, then static features",
        mean_is_above(
            "anonymous", _DYNAMIC, [name for name in _STATIC if name != "week-day"], "dynamic before static"
        ),
        "Section 6.5.4",
    ),
    Claim(
        "dynamic first",
        "In the anonymous setting dynamic features are the most important ones",
        mean_is_above("anonymous", _DYNAMIC, _STATIC, "dynamic before week day"),
        "Section 6.1's answer to RQ5.2, which section 6.5.4 contradicts",
    ),
    Claim(
        "orders",
        "In the identified setting orders and days since the last one are the most important features",
        highest(
            _of("identified", list(_FEATURES)),
            _of("identified", _HISTORY),
            "orders and days since the last first",
        ),
        "Section 6.5.4",
    ),
    Claim(
        "identified, then dynamic",
        "They are followed by deviation and mean of dwell time and the page sequence score",
        mean_is_above("identified", _DYNAMIC, _STATIC, "dynamic before static"),
        "Section 6.5.4",
    ),
    Claim(
        "static falls",
        "Static features have all importance at step 0, and less and less from then on",
        all_of(
            between((STATIC, _STEPS[0]), _ALL - _FLOAT, _ALL + _FLOAT, "all importance at step 0"),
            falls(STATIC, _STEPS, "importance of static features falls"),
        ),
        "Section 6.5.4",
    ),
)

TABLE_6_7 = STUDIES.add(
    Study(
        name="intent.table-6.7",
        asks="Which features are there, and are they as printed?",
        rows=tuple(log_row(name, label) for name, label in _FEATURES.items()),
        columns=tuple(Column(name, decimals=0) for name in _TABLE.columns),
        published=(_TABLE,),
        claims=_SET,
        settings=DECLARED,
        measure=Declared(),
        notes=(
            "What is held against the marks is how features are declared; that a static one does not change during a "
            "session, and none looks ahead, is what diptych intent audit tests on a log.",
        ),
        without_data=True,
    )
)

FIGURE_6_6 = STUDIES.add(
    Study(
        name="intent.figure-6.6",
        asks="Which features is a random forest's prediction made of, and how does that change during a session?",
        rows=(
            *(log_row(name, label) for name, label in _FEATURES.items()),
            log_row(STATIC, "static features together"),
        ),
        columns=tuple(Column(name) for name in published_table("intent", "figure-6.6").columns),
        published=(published_table("intent", "figure-6.6"),),
        claims=_WORTH,
        settings=PREDICTING,
        measure=Importance(),
        notes=(
            "Importance of single features is the mean over steps from 1 on, in per cent of all impurity; the thesis "
            "does not say at which step its own was taken.",
            "Impurity favours features with many values, such as dwell times, and is counted on training sessions; "
            "the figure has what permutation says too.",
        ),
        figure=importance_bars(),
        measured_by=PREDICTED_BY,
    )
)
