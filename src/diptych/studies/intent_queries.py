"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, queries.

diptych study run intent.table-6.5 --quick
diptych study run intent.table-6.6 --data LOG                        the folder that diptych intent ingest wrote

How often purchase sessions and others search, on which devices, and how many queries are different: half a minute
on generated scenes, a few seconds per million events of a log. A log without queries has no such rows. On scenes
expect 1.5 queries per purchase session and 0.5 per other: that is how they are made.
"""

from __future__ import annotations

from diptych.studies.claims import Claim, all_of
from diptych.studies.intent_counting import queries, unique_queries
from diptych.studies.intent_rows import CLASSES, DEVICES, device_rows, log_row, row_name
from diptych.studies.intent_settings import COUNTED_BY, COUNTING
from diptych.studies.intent_statistics import Counted, tables_of
from diptych.studies.log_checks import above, highest
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study

_DEVICES = [row_name(name) for name in DEVICES]
_POPULAR = ("smartphone", "pc", "tablet")
_BUT_PC = [name for name in _DEVICES if name != "pc"]


def _most(kind: str, column: str, device: str) -> Claim:
    """One device has the highest number of a column."""
    places = [(name, f"{kind} {column}") for name in _DEVICES]
    title = f"{kind}: {device}"
    label = {"pc": "PCs", "tablet": "tablets", "smartphone": "smartphones"}[device]
    named = {"per session": "per session", "%": "share"}[column]
    highest_of = {"per session": "most queries per session", "%": "largest share of queries"}[column]
    return Claim(
        f"{title}, {named}",
        f"Of {CLASSES[kind].lower()} {label} have the {highest_of}",
        highest(places, [(row_name(device), f"{kind} {column}")], f"{label} first"),
        "Section 6.4.5",
    )


_QUERIES = (
    Claim(
        "more",
        "Queries are more common in purchase sessions",
        all_of(
            *(
                above((name, "purchase per session"), (name, "non-purchase per session"))
                for name in ("all", *_POPULAR)
            )
        ),
        "Section 6.4.5; overall, and on the three popular devices",
    ),
    _most("purchase", "per session", "tablet"),
    _most("non-purchase", "per session", "pc"),
    _most("purchase", "%", "smartphone"),
    _most("non-purchase", "%", "pc"),
)

_UNIQUE = (
    Claim(
        "fewer",
        "Purchase sessions have fewer different queries, on every device but the PC",
        all_of(
            above(("all", "non-purchase count"), ("all", "purchase count")),
            *(above((name, "non-purchase count"), (name, "purchase count")) for name in _BUT_PC),
            above(("pc", "purchase count"), ("pc", "non-purchase count")),
        ),
        "Section 6.4.5; by counts",
    ),
    Claim(
        "smaller shares",
        "A device has a smaller share of the different queries of purchase sessions, every one but the PC",
        all_of(
            *(above((name, "non-purchase %"), (name, "purchase %")) for name in _BUT_PC),
            above(("pc", "purchase %"), ("pc", "non-purchase %")),
        ),
        "Section 6.4.5; by shares, as the text must be read to be true of the printed table",
    ),
    Claim(
        "retyped",
        "Fewer of the queries of purchase sessions are different ones, for they retype earlier ones",
        above(("all", "non-purchase unique %"), ("all", "purchase unique %")),
        "Section 6.4.5, the explanation; different queries per query, which the thesis does not print. It falls "
        "with the number of queries by itself",
    ),
)

_PER_SESSION = tuple(f"{kind} {column}" for kind in CLASSES for column in ("per session", "%"))
_COUNTS = tuple(f"{kind} {column}" for kind in CLASSES for column in ("count", "%", "unique %"))

TABLE_6_5 = STUDIES.add(
    Study(
        name="intent.table-6.5",
        asks="How many queries do purchase sessions and others have, and on which devices?",
        rows=(*device_rows(), log_row("all", "All devices")),
        columns=tuple(Column(name, decimals=2) for name in _PER_SESSION),
        published=(published_table("intent", "table-6.5"),),
        claims=_QUERIES,
        settings=COUNTING,
        measure=Counted("queries", queries, ("queries",)),
        tables=tables_of("queries"),
        measured_by=COUNTED_BY,
    )
)

TABLE_6_6 = STUDIES.add(
    Study(
        name="intent.table-6.6",
        asks="How many different queries do purchase sessions and others have, and on which devices?",
        rows=(*device_rows(), log_row("all", "All devices")),
        columns=tuple(Column(name, decimals=0 if name.endswith("count") else 2) for name in _COUNTS),
        published=(published_table("intent", "table-6.6"),),
        claims=_UNIQUE,
        settings=COUNTING,
        measure=Counted("unique-queries", unique_queries, ("unique-queries",)),
        notes=(
            "A query that is typed on two devices, or in sessions of both kinds, is counted in each cell; the "
            "thesis's totals are sums of its cells, and what is held against them is such a sum. The right total "
            "counts each query once.",
        ),
        tables=tables_of("unique-queries"),
        measured_by=COUNTED_BY,
    )
)
