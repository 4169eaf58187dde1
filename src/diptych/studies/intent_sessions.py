"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, sessions and their lengths.

diptych study run intent.table-6.1 --quick
diptych study run intent.table-6.1 --data LOG                        the folder that diptych intent ingest wrote
diptych study run intent.figure-6.2 --data clicks.dat --reader yoochoose
diptych study run intent.figure-6.2 --data LOG --set measure.gap=20

How many sessions there are, and how long they are: half a minute on generated scenes, a few seconds per million
events of a log. What is expensive is made once beside the studies' folders (intent.logs) and serves all studies of
the chapter. On scenes expect 78,055 sessions, and purchase sessions that are longer (P50 of 14 and 3 actions): that
is how they are made.
"""

from __future__ import annotations

from diptych.studies.claims import Check, Claim, Finding, all_of, missing
from diptych.studies.intent_figures import length_curves
from diptych.studies.intent_rows import (
    ANY,
    COUNTED_BY,
    COUNTING,
    DEVICES,
    MIDDLE,
    Counted,
    lengths,
    log_row,
    row_name,
    totals,
)
from diptych.studies.log_checks import Place, above, highest, known, lowest
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Row, Study
from diptych.studies.verdict import Evidence

KINDS = {"purchase": "purchase sessions", "other": "non-purchase sessions"}
"""How rows ``DEVICE-KIND`` of lengths end, and what they are of."""

_DEVICES = [row_name(name) for name in DEVICES]


def varies_between_devices(column: str) -> Check:
    """Lengths of purchase sessions differ less from device to device than those of the others, by their mean."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{column} of purchase sessions varies less between devices"
        spread = {}
        for kind in KINDS:
            values = list(known(evidence, [(f"{device}-{kind}", column) for device in _DEVICES]).values())
            if len(values) < 2:
                return [missing(what, "two devices")]
            spread[kind] = (max(values) - min(values)) * len(values) / max(sum(values), 1e-12)
        detail = f"{spread['purchase']:.2f} of the mean against {spread['other']:.2f}"
        return [
            Finding(what, spread["purchase"] < spread["other"], detail, spread["other"] - spread["purchase"])
        ]

    return check


def varies_within_devices() -> Check:
    """On each device P90 is fewer times P50 for purchase sessions than for the others."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for device in _DEVICES:
            what = f"P90 / P50 of purchase sessions is lower on {device}"
            ratios = _ratios(evidence, device, "P90")
            if len(ratios) < 2:
                findings.append(missing(what, device))
                continue
            own, other = ratios["purchase"], ratios["other"]
            findings.append(
                Finding(what, own < other, f"{own:.2f} against {other:.2f}", (other - own) / other)
            )
        return findings

    return check


def tail() -> Check:
    """P99 is the most times P50 for non-purchase sessions on PCs."""

    def check(evidence: Evidence) -> list[Finding]:
        what = "P99 / P50 is highest for non-purchase sessions on PCs"
        found = {
            f"{device}, {KINDS[kind]}": ratio
            for device in _DEVICES
            for kind, ratio in _ratios(evidence, device, "P99").items()
        }
        own = found.pop(f"pc, {KINDS['other']}", None)
        if own is None or not found:
            return [missing(what, "non-purchase sessions on PCs")]
        next_to = max(found, key=lambda name: found[name])
        detail = f"{own:.2f}; {next_to}: {found[next_to]:.2f}"
        return [Finding(what, own > found[next_to], detail, (own - found[next_to]) / own)]

    return check


def _ratios(evidence: Evidence, device: str, column: str) -> dict[str, float]:
    """How many times P50 another percentile is, per kind of session."""
    ratios = {}
    for kind in KINDS:
        row = f"{device}-{kind}"
        values = known(evidence, [(row, column), (row, "P50")])
        if len(values) == 2 and values[row, "P50"] > 0:
            ratios[kind] = values[row, column] / values[row, "P50"]
    return ratios


_LARGE = ["pc", "tv", "game-console"]


def _length_rows() -> tuple[Row, ...]:
    extra = "of all devices together"
    named = [(row_name(name), label, "") for name, label in DEVICES.items()]
    return tuple(
        log_row(f"{name}-{kind}", f"{label}, {title}", why)
        for name, label, why in [*named, (ANY, "All devices", extra)]
        for kind, title in KINDS.items()
    )


def _on_devices(kind: str) -> list[Place]:
    return [(f"{device}-{kind}", MIDDLE) for device in _DEVICES]


_LONGER = all_of(
    *(above((f"{device}-purchase", MIDDLE), (f"{device}-other", MIDDLE)) for device in [*_DEVICES, ANY])
)
_SHORTEST = all_of(
    *(
        lowest(_on_devices(kind), [(f"smartphone-{kind}", MIDDLE)], f"{title} are shortest on smartphones")
        for kind, title in KINDS.items()
    )
)
_LONGEST = all_of(
    *(
        highest(
            _on_devices(kind),
            [(f"{device}-{kind}", MIDDLE) for device in _LARGE],
            f"{title} are longest on PC, TV and game console",
        )
        for kind, title in KINDS.items()
    )
)

_LENGTHS = (
    Claim(
        "longer",
        "Purchase sessions are longer than others, on every device",
        _LONGER,
        f"Section 6.4.1, “between the P50 and P90 percentiles”: here {MIDDLE}, the mean of sessions between them",
    ),
    Claim(
        "between devices",
        "Lengths of purchase sessions vary less between devices",
        varies_between_devices(MIDDLE),
        "Section 6.4.1, “per device varies less”, in one reading: highest less lowest, by their mean",
    ),
    Claim(
        "within devices",
        "Lengths of purchase sessions vary less on each device",
        varies_within_devices(),
        "Section 6.4.1, “per device varies less”, in the other reading, to which its explanation fits: P90 / P50",
    ),
    Claim("shortest", "The shortest sessions take place on smartphones", _SHORTEST, "Section 6.4.1"),
    Claim(
        "longest",
        "The longest sessions occur on PC, TV and game console; tablets lie between",
        _LONGEST,
        "Section 6.4.1",
    ),
    Claim(
        "tail",
        "Non-purchase sessions on PCs have an exceptionally long tail",
        tail(),
        "Section 6.4.1; here P99 / P50",
    ),
)

_TABLE = published_table("intent", "table-6.1")

_TOTALS = (
    Claim(
        "anonymous",
        "More than half of the sessions are anonymous",
        above(("anonymous-sessions", "total"), ("identified-sessions", "total")),
        "Section 6.1: “more than 50 % of traffic”",
    ),
    Claim(
        "infrequent",
        "Queries are infrequent: fewer than sessions",
        above(("sessions", "total"), ("queries", "total")),
        "Section 6.4.5",
    ),
)

TABLE_6_1 = STUDIES.add(
    Study(
        name="intent.table-6.1",
        asks="How many sessions, known and anonymous, how many visitors and queries has a log?",
        topic="size of the log",
        rows=(
            log_row("sessions", "Sessions"),
            log_row("anonymous-sessions", "Anonymous"),
            log_row("identified-sessions", "Logged-in or recognized"),
            log_row("identified-visitors", "Logged-in or recognized customers"),
            log_row("queries", "Queries"),
            log_row("distinct-queries", "Unique queries"),
            log_row("device-types", "Device types"),
            log_row("events", "Events", "not in the thesis"),
            log_row("purchase-sessions", "Purchase sessions", "not in the thesis"),
            log_row("clients", "Clients", "not in the thesis"),
            log_row("purchasers", "Purchasers", "not in the thesis"),
        ),
        columns=(Column("total", decimals=0, logarithmic=True),),
        published=(
            _TABLE,
            *(published_table("intent", name) for name in ("section-6.4.5", "text-table-6.1")),
        ),
        claims=_TOTALS,
        settings=COUNTING,
        measure=Counted("totals", totals, ("overview",)),
        measured_by=COUNTED_BY,
    )
)

FIGURE_6_2 = STUDIES.add(
    Study(
        name="intent.figure-6.2",
        asks="How long are purchase sessions and others, on which device?",
        topic="lengths of sessions per device",
        rows=_length_rows(),
        columns=(
            Column("mean"),
            *(Column(name, decimals=0) for name in ("P50", "P90", "P99")),
            Column(MIDDLE),
        ),
        published=(published_table("intent", "figure-6.2"),),
        claims=_LENGTHS,
        settings=COUNTING,
        measure=Counted("lengths", lengths, ("session-length", "session-length-quantiles")),
        notes=(
            "A length is the number of actions: pages, queries, and items put into and taken out of the basket. "
            "Percentiles are whole numbers, so they are often equal; P50 to P90 is the mean length of the "
            "sessions between the two.",
        ),
        figure=length_curves(),
        measured_by=COUNTED_BY,
    )
)
