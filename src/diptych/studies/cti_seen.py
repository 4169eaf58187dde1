"""Hendriksen et al. (ECIR 2022): thesis ch. 7, Table 7.3, categories that were not seen in training.

diptych study run cti.table-7.3 --quick
diptych study run cti.table-7.3 --data PRODUCTS --set measure.split=category

A category is seen when a training product has it in the setting. Where products are split at random few specific
categories are not; measure.split=category holds a fifth of them out, as in the setting quick, where seen categories are
found better. Seconds, after table 7.1.
"""

from __future__ import annotations

from diptych.studies.claims import Claim
from diptych.studies.cti_error_checks import none_found, seen_over_unseen
from diptych.studies.cti_figure import seen_bars
from diptych.studies.cti_measuring import SeenRetrieved
from diptych.studies.cti_rows import MEASURES, RETRIEVAL, seen_rows
from diptych.studies.cti_settings import MAP_NOTE, NOTES, SETTINGS
from diptych.studies.cti_tables import seen_tables
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Study

_PRECISION = ("P@1", "P@5", "P@10", "R-precision")
_AVERAGE = tuple(name for name in MEASURES if name not in _PRECISION)

TABLE_7_3 = STUDIES.add(
    Study(
        name="cti.table-7.3",
        asks="Does CLIP-ITA find products of categories that it has not seen in training?",
        rows=seen_rows(),
        columns=RETRIEVAL,
        published=(published_table("cti", "table-7.3"), published_table("cti", "text-table-7.3")),
        claims=(
            Claim(
                "most general",
                "Seen categories are found better than unseen ones",
                seen_over_unseen("most-general"),
                "Section 7.6.2",
            ),
            Claim(
                "nothing",
                "Of unseen most general categories no product is found at all",
                none_found("unseen-most-general"),
                "Section 7.6.2; the thesis has two such categories",
            ),
            Claim(
                "most specific",
                "Seen categories are found better than unseen ones",
                seen_over_unseen("most-specific"),
                "Section 7.6.2",
            ),
            Claim(
                "all, precision",
                "Unseen categories are found better by P@k and R-precision, all categories",
                seen_over_unseen("all", _PRECISION, "unseen", "seen"),
                "Section 7.6.2",
            ),
            Claim(
                "all, mAP",
                "Seen categories are found better by mAP@k, all categories",
                seen_over_unseen("all", _AVERAGE),
                "Section 7.6.2",
            ),
            Claim(
                "conclusion",
                "Seen categories are found better than unseen ones, all categories",
                seen_over_unseen("all"),
                "Section 7.7: “the performance on unseen categories is lower”",
            ),
        ),
        settings=SETTINGS,
        measure=SeenRetrieved(),
        notes=(MAP_NOTE, *NOTES),
        figure=seen_bars(),
        tables=seen_tables,
    )
)
