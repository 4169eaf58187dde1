"""Hendriksen et al., Extending CLIP for Category-to-image Retrieval in E-commerce (2022): thesis ch. 7, Table 7.1.

diptych study run cti.table-7.1 --quick
diptych study run cti.table-7.1 --data PRODUCTS
diptych study run cti.table-7.1 --data PRODUCTS --set features.image=backbone:mobilenetv2_100 \
    --set features.weights=FILE --set features.text=sentence:all-MiniLM-L6-v2
diptych study run cti.table-7.1 --data PRODUCTS --rows clip-i-most-general,clip-ita-most-general --seeds 0

Three models without training, and one per subset of picture, title and attributes, in three settings: half a minute on
generated products. There expect CLIP-ITA best of all in the most specific setting, and pictures to say far more than
titles in the most general one.
"""

from __future__ import annotations

from diptych.studies.claims import Claim, all_of
from diptych.studies.cti_checks import (
    DEPTHS,
    DIFFERENT,
    GENERAL,
    SAME,
    SPECIFIC,
    ErrorDepths,
    ErrorTrees,
    Retrieved,
    SeenRetrieved,
    ahead,
    below,
    best_in,
    comparable,
    gains_most,
    keeps_more_points,
    keeps_more_share,
    mostly,
    mostly_at,
    none_found,
    seen_over_unseen,
    share_above,
)
from diptych.studies.cti_rows import (
    BASELINES,
    FULL,
    MAP_NOTE,
    MEASURES,
    NOTES,
    RETRIEVAL,
    SETTINGS,
    TRAINED,
    model_rows,
    seen_rows,
    setting_rows,
)
from diptych.studies.cti_tables import (
    depth_bars,
    error_tables,
    model_dots,
    result_tables,
    seen_bars,
    seen_tables,
    tree_bars,
)
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study

_GENERAL, _SPECIFIC, _ALL = "most-general", "most-specific", "all"
_NOT_R = tuple(name for name in MEASURES if name != "R-precision")
_PRINTED = (*BASELINES, "clip-i", "clip-ia")

_CLAIMS = (
    *(
        Claim(
            f"multimodal, {called}",
            f"CLIP-ITA beats CLIP-I, CLIP-IA and the baselines: {called}",
            best_in(setting, FULL, _PRINTED),
            "Sections 7.5.4 and 7.7",
        )
        for setting, called in SETTINGS.items()
    ),
    Claim(
        "each modality",
        "CLIP-ITA beats each of its modalities alone, in all settings",
        all_of(*(ahead(FULL, alone) for alone in ("clip-i", "clip-t", "clip-a"))),
        "RQ6; titles alone and attributes alone are not in the thesis",
    ),
    Claim(
        "I < IA < ITA",
        "On the most specific categories attributes help a picture, and titles help both",
        all_of(ahead("clip-ia", "clip-i", (_SPECIFIC,)), ahead(FULL, "clip-ia", (_SPECIFIC,))),
        "Sections 7.5.3 and 7.5.4",
    ),
    Claim(
        "IA, most general",
        "On the most general categories CLIP-IA beats CLIP-I and MPNet",
        all_of(*(ahead("clip-ia", other, (_GENERAL,)) for other in ("clip-i", "sentence"))),
        "Section 7.5.3",
    ),
    Claim(
        "IA, all",
        "On all categories CLIP-IA is worse than CLIP-I, and better than MPNet",
        all_of(below("clip-ia", "clip-i", (_ALL,)), ahead("clip-ia", "sentence", (_ALL,))),
        "Section 7.5.3",
    ),
    Claim(
        "training",
        "CLIP-I beats zero-shot CLIP in all settings",
        ahead("clip-i", "clip"),
        "Section 7.5.2",
    ),
    Claim(
        "I and MPNet",
        "CLIP-I beats MPNet but on the most specific categories, where it loses",
        all_of(ahead("clip-i", "sentence", (_ALL, _GENERAL)), below("clip-i", "sentence", (_SPECIFIC,))),
        "Section 7.5.2",
    ),
    Claim(
        "attributes",
        "What attributes add to a picture is most on the most specific categories, in per cent",
        gains_most("clip-ia", "clip-i", _SPECIFIC, (_ALL, _GENERAL)),
        "Section 7.5.3: “especially when evaluated on most specific categories”",
    ),
    Claim(
        "pictures, share",
        "Pictures alone reach more of CLIP-ITA on the most general categories than on the most specific, by share",
        keeps_more_share("clip-i", _GENERAL, _SPECIFIC),
        "Section 7.7: “for identification of the most general categories, visual information is more relevant”",
    ),
    Claim(
        "pictures, points",
        "Pictures alone are fewer points behind CLIP-ITA on the most general categories than on the most specific",
        keeps_more_points("clip-i", _GENERAL, _SPECIFIC),
        "Section 7.7, read otherwise",
    ),
    Claim(
        "pictures, conclusion",
        "On the most general categories CLIP-I is better than CLIP-ITA",
        ahead("clip-i", FULL, (_GENERAL,)),
        "Section 7.7 and the answer to RQ6: “works slightly better”; Table 7.1 says otherwise",
    ),
    Claim(
        "MPNet and CLIP, most general",
        "MPNet beats CLIP in all but R-precision",
        all_of(
            ahead("sentence", "clip", (_GENERAL,), _NOT_R),
            below("sentence", "clip", (_GENERAL,), ("R-precision",)),
        ),
        "Section 7.5.1",
    ),
    Claim(
        "baselines",
        "MPNet beats CLIP on the most specific categories, and CLIP beats BM25 there and on the most general",
        all_of(ahead("sentence", "clip", (_SPECIFIC,)), ahead("clip", "bm25", (_GENERAL, _SPECIFIC))),
        "Section 7.5.1",
    ),
    Claim(
        "baselines, all",
        "On all categories the three baselines are comparable",
        comparable(BASELINES, _ALL, 2),
        "Section 7.5.1; “comparable”: none has more than twice another's number",
    ),
)

TABLE_7_1 = STUDIES.add(
    Study(
        name="cti.table-7.1",
        asks="Which of a product's picture, title and attributes find the products of a category, general or specific?",
        topic="which modalities find products",
        rows=model_rows(),
        columns=RETRIEVAL,
        published=(published_table("cti", "table-7.1"), published_table("cti", "text-table-7.1")),
        claims=_CLAIMS,
        settings=TRAINED,
        paths=("features.weights",),
        measure=Retrieved(),
        notes=(MAP_NOTE, *NOTES),
        figure=model_dots(),
        tables=result_tables,
    )
)

_PRECISION = ("P@1", "P@5", "P@10", "R-precision")
_AVERAGE = tuple(name for name in MEASURES if name not in _PRECISION)

TABLE_7_3 = STUDIES.add(
    Study(
        name="cti.table-7.3",
        asks="Does CLIP-ITA find products of categories that it has not seen in training?",
        topic="categories unseen in training",
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
        settings=TRAINED,
        paths=("features.weights",),
        measure=SeenRetrieved(),
        notes=(MAP_NOTE, *NOTES),
        figure=seen_bars(),
        tables=seen_tables,
    )
)

_C_P = (
    "c_p, the predicted category, is that of the first product in the setting that is asked: so two roots are never in "
    "one tree, and the most general setting has no errors within a tree."
)

TABLE_7_2 = STUDIES.add(
    Study(
        name="cti.table-7.2",
        asks="Are wrong first products in the tree of the category that asked?",
        topic="trees of wrong first products",
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
        settings=TRAINED,
        paths=("features.weights",),
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
        topic="levels of wrong first products",
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
        settings=TRAINED,
        paths=("features.weights",),
        measure=ErrorDepths(),
        notes=(_C_P, *NOTES),
        figure=depth_bars(),
        tables=error_tables,
    )
)
