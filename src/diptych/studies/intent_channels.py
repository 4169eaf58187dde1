"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, channels.

diptych study run intent.table-6.2 --quick
diptych study run intent.table-6.2 --data LOG --set measure.ddof=1   the folder that diptych intent ingest wrote

By which channels purchase sessions and others come: half a minute on generated scenes, a few seconds per million
events of a log. A log without channels has no such rows. On scenes expect 16.5 % paid sessions among purchases and
12.9 % among others: that is how they are made.
"""

from __future__ import annotations

from diptych.studies.claims import Claim, all_of
from diptych.studies.intent_counting import channel_shares
from diptych.studies.intent_figures import channel_bars
from diptych.studies.intent_rows import CHANNELS, channel_rows
from diptych.studies.intent_settings import BESIDES, COUNTED_BY, COUNTING, SHARES
from diptych.studies.intent_statistics import Counted, tables_of
from diptych.studies.log_checks import above, column_of, highest, less_in_purchases, more_in_purchases
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Study

_CHANNELS = (
    Claim(
        "direct first",
        "The direct channel is the most used one of both kinds of sessions",
        all_of(
            *(
                highest(column_of(kind, list(CHANNELS)), [("direct", kind)], f"{kind}: direct first")
                for kind in ("purchase", "non-purchase")
            )
        ),
        "Section 6.4.3",
    ),
    Claim(
        "order",
        "Paid comes second and organic third",
        all_of(
            *(
                check
                for kind in ("purchase", "non-purchase")
                for check in (
                    highest(
                        column_of(kind, ["paid", "organic", "other"]),
                        [("paid", kind)],
                        f"{kind}: paid second",
                    ),
                    above(("organic", kind), ("other", kind)),
                )
            )
        ),
        "Section 6.4.3",
    ),
    Claim(
        "paid and organic",
        "Purchase sessions enter more by paid and organic channels",
        all_of(more_in_purchases("paid"), more_in_purchases("organic")),
        "Section 6.4.3",
    ),
    Claim(
        "direct",
        "The direct channel is more common for non-purchase sessions",
        less_in_purchases("direct"),
        "Section 6.4.3",
    ),
)

TABLE_6_2 = STUDIES.add(
    Study(
        name="intent.table-6.2",
        asks="By which channels do purchase sessions and others come?",
        rows=channel_rows(),
        columns=SHARES,
        published=(published_table("intent", "table-6.2"), published_table("intent", "text-table-6.2")),
        claims=_CHANNELS,
        settings=COUNTING,
        measure=Counted("channels", channel_shares, ("channels",)),
        notes=(
            BESIDES,
            "Standardised rates of this table divide by n − 1 in the thesis, and so does what is held against them; "
            "the right one divides as --set measure.ddof says, by n when nobody does.",
        ),
        figure=channel_bars(),
        tables=tables_of("channels"),
        measured_by=COUNTED_BY,
    )
)
