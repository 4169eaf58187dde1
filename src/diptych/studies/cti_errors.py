"""Hendriksen et al. (ECIR 2022): thesis ch. 7, Table 7.2 and Figure 7.2, the errors of CLIP-ITA.

diptych study run cti.table-7.2 --quick
diptych study run cti.figure-7.2 --data PRODUCTS

An error is a category whose first product has another one. On generated products expect more errors in the tree of the
target in the setting of all categories, where other categories of its path are wrong too. Seconds, after table 7.1.
"""

from __future__ import annotations

from diptych.studies.claims import Claim
from diptych.studies.cti_error_checks import (
    DEPTHS,
    DIFFERENT,
    GENERAL,
    SAME,
    SPECIFIC,
    mostly,
    mostly_at,
    share_above,
)
from diptych.studies.cti_figure import depth_bars, tree_bars
from diptych.studies.cti_measuring import ErrorDepths, ErrorTrees
from diptych.studies.cti_rows import setting_rows
from diptych.studies.cti_settings import NOTES, SETTINGS
from diptych.studies.cti_tables import error_tables
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study

_C_P = (
    "c_p, the predicted category, is that of the first product in the setting that is asked: so two roots are never in "
    "one tree, and the most general setting has no errors within a tree."
)

TABLE_7_2 = STUDIES.add(
    Study(
        name="cti.table-7.2",
        asks="Are wrong first products in the tree of the category that asked?",
        rows=setting_rows(total=True),
        columns=tuple(Column(name, decimals=0) for name in (SAME, DIFFERENT)),
        published=(published_table("cti", "table-7.2"), published_table("cti", "text-table-7.2")),
        claims=(
            Claim(
                "most general",
                "Most errors are in another tree",
                mostly("most-general", DIFFERENT, SAME),
                "Section 7.6.1; with a category of the setting it cannot be otherwise",
            ),
            Claim(
                "most specific",
                "Most errors are in another tree",
                mostly("most-specific", DIFFERENT, SAME),
                "Section 7.6.1: 89 %",
            ),
            Claim(
                "all categories",
                "Most errors are in the same tree",
                mostly("all", SAME, DIFFERENT),
                "Section 7.6.1: 72 %",
            ),
        ),
        settings=SETTINGS,
        measure=ErrorTrees(),
        notes=(_C_P, *NOTES),
        figure=tree_bars(),
        tables=error_tables,
    )
)

FIGURE_7_2 = STUDIES.add(
    Study(
        name="cti.figure-7.2",
        asks="How much more general or specific than the target is the category of a wrong first product?",
        rows=setting_rows(),
        columns=(
            *(Column(f"d = {depth}", decimals=1, short=f"d={depth}") for depth in DEPTHS),
            Column(GENERAL, decimals=1),
            Column(SPECIFIC, decimals=1),
        ),
        published=(published_table("cti", "figure-7.2"), published_table("cti", "table-7.2")),
        claims=(
            Claim(
                "one level",
                "Most errors within the tree are one level more general, most specific categories",
                mostly_at("most-specific", -1),
                "Section 7.6.1: 68 %",
            ),
            Claim(
                "more general",
                "Nearly all errors within the tree are more general, all categories",
                share_above("all", GENERAL, 90),
                "Section 7.6.1: “in 92 % of the cases”; at least 90 % is taken for it",
            ),
            Claim(
                "more specific",
                "Most errors within the tree are more specific, all categories",
                share_above("all", SPECIFIC, 50),
                "Section 7.6.1, later: “the majority … were more specific than the target”",
            ),
        ),
        settings=SETTINGS,
        measure=ErrorDepths(),
        notes=(_C_P, *NOTES),
        figure=depth_bars(),
        tables=error_tables,
    )
)
