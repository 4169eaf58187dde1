"""What chapter 4 left open: how much of each kind of information survives shortcuts, in per cent.

diptych study run svl.information --quick                              10 minutes on a processor
diptych study run svl.information --data SCENES                        minutes per row on a GPU

Scenes know every fact that each caption states, so that probes on rows say how much of what all captions
state, of what one states alone, of what none ever does and of the shortcut a representation holds: the gap of
theorem 1, which the thesis could only argue about. On other collections the same is asked of words.
Rows are those of figure 4.5 and tables 4.1 and 4.2, whose runs are used, and SmoothAP with all captions
of an image in its batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from diptych.studies.claims import Claim, beats
from diptych.studies.information import Information
from diptych.studies.published import published_table
from diptych.studies.shortcut_rows import NOTES, ifm_row, ltd_row, setting_of, setup_row
from diptych.studies.study import STUDIES, Column, Row, Setting, SettingName, Study

__all__: list[str] = []

_BUDGET = 0.05  # what the thesis found best from scratch

SMOOTHAP = Row(
    "vse-none-smoothap",
    "From scratch, no shortcuts, SmoothAP",
    "vse",
    {
        "shortcuts.setup": "none",
        "objective": {"name": "smoothap", "temperature": 0.01},
        "batches.plan": "grouped",
        "batches.captions_per_image": 5,
    },
    extra="not in the paper: all captions of an image are in its batch, so that no one of them is enough",
)

ALL_CAPTIONS = Row(
    "vse-none-all-captions",
    "From scratch, no shortcuts, InfoNCE, all captions",
    "vse",
    {"shortcuts.setup": "none", "batches.plan": "grouped", "batches.captions_per_image": 5},
    extra="not in the paper: InfoNCE on the batches of the row below, so that batches and loss can be told apart",
)

# In the paper's setting the others' epochs hold every caption once, five times as many batches.
_LONGER: Mapping[SettingName, dict[str, Any]] = {
    "paper": {"stages.0.epochs": 150, "stages.0.step_epochs": 75},
    "data": {},
    "quick": {},
}


# Rows of one recipe would be one training under two names.
_LEFT_OUT: Mapping[SettingName, dict[str, str]] = {
    "paper": {},
    "data": {
        ALL_CAPTIONS.name: "is vse-none here, whose batches hold all captions of an image in this setting anyway"
    },
    "quick": {},
}


def _setting(name: SettingName) -> Setting:
    plain = setting_of(name)
    return replace(
        plain,
        changes={**plain.changes, **{row.name: _LONGER[name] for row in (SMOOTHAP, ALL_CAPTIONS)}},
        left_out=_LEFT_OUT[name],
    )


INFORMATION = STUDIES.add(
    Study(
        name="svl.information",
        asks="How much of what captions share, and of what one states alone, survives shortcuts and their cures?",
        rows=(
            setup_row("vse", "none"),
            setup_row("vse", "unique"),
            ltd_row("vse", "unique", None),
            ifm_row("vse", "unique", _BUDGET),
            setup_row("vse", "per-caption-all"),
            setup_row("vse", "per-caption-one"),
            ALL_CAPTIONS,
            SMOOTHAP,
        ),
        columns=(
            Column("image shared"),
            Column("image specific"),
            Column("image never described"),
            Column("image shortcut"),
            Column("caption shared"),
            Column("caption specific"),
            Column("caption shortcut"),
        ),
        published=(published_table("svl", "information"),),
        claims=(
            Claim(
                "suppression",
                "With unique shortcuts, captions' rows hold less of what each states alone than without",
                beats("vse-none", "vse-unique", "caption specific"),
                "not in the paper; of section 4.4.2",
            ),
            Claim(
                "all captions",
                "With all captions of an image in the batch its row holds more of what one of them states alone",
                beats("vse-none-all-captions", "vse-none", "image specific"),
                "not in the paper; of theorem 1",
            ),
            Claim(
                "own numbers",
                "A picture's row holds less of a number that one of its captions has than of one that all share",
                beats("vse-unique", "vse-per-caption-one", "image shortcut"),
                "not in the paper; of section 4.8, future work",
            ),
            Claim(
                "restored",
                "LTD restores what shortcuts suppress in captions",
                beats("vse-unique-ltd-dual", "vse-unique", "caption shared", "caption specific"),
                "not in the paper; of section 4.6.1",
            ),
        ),
        settings={"paper": _setting("paper"), "data": _setting("data"), "quick": _setting("quick")},
        measure=Information(),
        notes=(
            *NOTES,
            "Nothing of this is in the thesis: rows, columns and claims are ours.",
            "No claim holds shared against specific within one encoder: they are different facts (on scenes shared is "
            "the main object's shape and colour, the largest in the picture), and which is easier to see decides as "
            "much as training does. The same facts are held against each other between runs.",
        ),
    )
)
