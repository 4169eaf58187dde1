"""Hendriksen et al., Assessing Brittleness of Image-Text Retrieval Benchmarks (2024): thesis ch. 5, tables 5.2–5.4.

diptych study run brittleness.table-5.3 --quick                                             two minutes
diptych study run brittleness.table-5.3 --data coco=COCO --data coco-fg=COCO_FG --set clip=CLIP --set align=ALIGN
diptych study run brittleness.table-5.4 --data my=MINE --data my-fg=FINER --set encoder=RUN --set bag=CONTROL

What do finer captions and thirteen changes of captions do to retrieval from text, and do they change the same
queries? Expect the bag of words to be exactly indifferent to shuffles; the thesis prints 116.09 clean and 85.78
with all words shuffled (ALIGN on COCO). All three share what is given and embedded, tables 5.3 and 5.4 the run.
"""

from __future__ import annotations

from diptych.studies.brittleness_checks import (
    finer_drops_less,
    highest,
    hurts_most,
    hurts_most_everywhere,
    indifferent,
    lowers_always,
    mostly_lower,
)
from diptych.studies.brittleness_chosen import MEASURED_BY, check_chosen
from diptych.studies.brittleness_figure import FIGURE
from diptych.studies.brittleness_gains import average_gain, finer_raises, gain_of, gains_more
from diptych.studies.brittleness_measuring import Clean, Suite
from diptych.studies.brittleness_rows import (
    CLEAN_COLUMNS,
    CLEAN_NOTES,
    HOME,
    JACCARD_COLUMNS,
    NOTES,
    ROWS,
    RSUM_COLUMNS,
    SETTINGS,
    SHUFFLES,
)
from diptych.studies.brittleness_tables import agreement_tables, drop_tables, remarks_on_runs
from diptych.studies.claims import Claim, all_of
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Study

_RESULTS = "Section 5.5.3"
_I2T, _T2I = "i2t R@1", "t2i R@1"
_PAPERS = ("coco", "flickr30k")
_ALL_WORDS, _LEXICAL = "shuffle-all-words", "synonyms"

TABLE_5_2 = STUDIES.add(
    Study(
        name="brittleness.table-5.2",
        asks="Do finer captions of the same pictures make retrieval easier?",
        rows=ROWS,
        columns=CLEAN_COLUMNS,
        published=(published_table("brittleness", "table-5.2"),),
        claims=(
            Claim(
                "finer captions",
                "Refining captions improves R@1 in most cases",
                finer_raises(_I2T, _T2I),
                f"{_RESULTS}; most: more than half of all models, collections and directions",
            ),
            Claim(
                "from text",
                "The greatest benefits are from text: R@1 gains a larger share than from pictures",
                gains_more(_T2I, _I2T),
                f"{_RESULTS}; means over models and collections",
            ),
            Claim(
                "named",
                "R@1 gains 16.23 % from text and 6.44 % from pictures on average",
                all_of(average_gain(_T2I, 0.1623, *_PAPERS), average_gain(_I2T, 0.0644, *_PAPERS)),
                f"{_RESULTS}; to half a per cent",
                on=("thesis",),
            ),
            Claim(
                "named, collections",
                "R@1 gains 8.14 % (pictures) and 17.11 % (text) on MS-COCO, 4.75 % and 15.35 % on Flickr30k",
                all_of(
                    average_gain(_I2T, 0.0814, "coco"),
                    average_gain(_T2I, 0.1711, "coco"),
                    average_gain(_I2T, 0.0475, "flickr30k"),
                    average_gain(_T2I, 0.1535, "flickr30k"),
                ),
                f"{_RESULTS}; to half a per cent",
                on=("thesis",),
            ),
            Claim(
                "named, highest",
                "The highest gain is 29.11 %, of CLIP from text on Flickr30k",
                gain_of("clip", "flickr30k", _T2I, 0.2911),
                f"{_RESULTS}; to half a per cent",
                on=("thesis",),
            ),
        ),
        settings=SETTINGS,
        measure=Clean(),
        notes=CLEAN_NOTES,
        several=True,
        measured_by=MEASURED_BY,
        check_measuring=check_chosen,
    )
)

TABLE_5_3 = STUDIES.add(
    Study(
        name=HOME,
        asks="What do thirteen changes of captions do to retrieval from text, with coarse and with finer captions?",
        rows=ROWS,
        columns=RSUM_COLUMNS,
        published=(published_table("brittleness", "table-5.3"),),
        claims=(
            Claim(
                "the control",
                "A bag of words is exactly indifferent to all five shuffles: no query moves",
                indifferent(),
                "a check of the suite, not of the paper",
            ),
            Claim(
                "drops",
                "Perturbations lower the sum for most pairs of perturbation and collection",
                mostly_lower(),
                f"{_RESULTS}; most: more than half, over models too",
            ),
            Claim(
                "word order",
                "Word order matters: every shuffle lowers the sum of every model, against Yuksekgonul et al. (2023)",
                lowers_always(SHUFFLES),
                _RESULTS,
            ),
            Claim(
                "shuffle all words",
                "Shuffling all words leads to the largest drop",
                hurts_most(_ALL_WORDS),
                f"{_RESULTS}; the mean relative drop over models and collections",
            ),
            Claim(
                "shuffle all words, everywhere",
                "Shuffling all words leads to the largest drop of every model on every collection",
                hurts_most_everywhere(_ALL_WORDS),
                _RESULTS,
            ),
            Claim(
                "lexical variation",
                "Lexical variation (synonyms) has the smallest effect",
                hurts_most(_LEXICAL, least=True),
                f"{_RESULTS}; the mean relative drop over models and collections",
            ),
            Claim(
                "lexical variation, everywhere",
                "Lexical variation has the smallest effect on every model and collection",
                hurts_most_everywhere(_LEXICAL, least=True),
                _RESULTS,
            ),
            Claim(
                "finer captions",
                "With finer captions relative drops are smaller (said of MS-COCO)",
                finer_drops_less(leave_out=("flickr30k",)),
                f"{_RESULTS}; for more than half of the perturbations, means over models",
            ),
            Claim(
                "Flickr30k",
                "On Flickr30k-FG drops are smaller for only 5 of 13 perturbations",
                finer_drops_less(only="flickr30k", most=False),
                f"{_RESULTS}; for fewer than half, means over models; eight kinds are printed",
            ),
        ),
        settings=SETTINGS,
        measure=Suite("rsum"),
        notes=NOTES,
        figure=FIGURE,
        remarks=remarks_on_runs,
        several=True,
        measured_by=MEASURED_BY,
        check_measuring=check_chosen,
        tables=drop_tables,
    )
)

TABLE_5_4 = STUDIES.add(
    Study(
        name="brittleness.table-5.4",
        asks="Do different changes of captions hurt, help and spare the same queries?",
        rows=ROWS,
        columns=JACCARD_COLUMNS,
        published=(published_table("brittleness", "table-5.4"),),
        claims=(
            Claim(
                "unchanged",
                "The highest similarity is that of captions whose queries stay",
                highest("unchanged"),
                "Section 5.5.4; of every model on every collection",
            ),
            Claim(
                "increased",
                "The lowest similarity is that of captions whose queries gain",
                highest("increased", lowest=True),
                "Section 5.5.4; of every model on every collection",
            ),
        ),
        settings=SETTINGS,
        measure=Suite("jaccard"),
        notes=NOTES,
        remarks=remarks_on_runs,
        several=True,
        measured_by=MEASURED_BY,
        check_measuring=check_chosen,
        tables=agreement_tables,
    )
)
