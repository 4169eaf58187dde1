"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, devices and switches.

diptych study run intent.table-6.3 --quick
diptych study run intent.table-6.4 --data LOG                        the folder that diptych intent ingest wrote
diptych study run intent.figure-6.5 --data LOG --set measure.journey=journey

On which devices is bought, how many devices visitors have, and from which to which they go before they buy: half a
minute on generated scenes, a few seconds per million events of a log. A log without devices or known visitors has no
such rows. On scenes expect PCs 1.4 deviations ahead, and 23 % of purchasers with several devices: that is how they
are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from diptych.studies.claims import Check, Claim, Finding, all_of, missing
from diptych.studies.intent_figures import device_bars
from diptych.studies.intent_rows import (
    BESIDES,
    COUNTED_BY,
    COUNTING,
    DEVICES,
    SHARES,
    Counted,
    device_counts,
    device_rows,
    device_shares,
    log_row,
    row_name,
    tables_of,
    transitions,
)
from diptych.studies.log_checks import (
    Place,
    above,
    column_of,
    highest,
    known,
    less_in_purchases,
    more_in_purchases,
)
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study
from diptych.studies.verdict import Evidence


def rates_fall(rows: Sequence[str]) -> Check:
    """Standardised conversion rates fall in the order of ``rows``, of which some may be missing."""

    def check(evidence: Evidence) -> list[Finding]:
        there = [row for row in rows if known(evidence, [(row, "standardised")])]
        if len(there) < 2:
            return [missing("rates fall", "two groups")]
        pairs = pairwise(there)
        return [
            finding
            for first, second in pairs
            for finding in above((first, "standardised"), (second, "standardised"))(evidence)
        ]

    return check


def difference_grows(rows: Sequence[str], first: str, second: str) -> Check:
    """How many times as frequent among ``first`` as among ``second`` a row is, rises from row to row."""

    def check(evidence: Evidence) -> list[Finding]:
        ratios = {}
        for row in rows:
            found = known(evidence, [(row, first), (row, second)])
            if len(found) == 2 and found[row, second] > 0:
                ratios[row] = found[row, first] / found[row, second]
        what = f"{first} are the more ahead, the more there are"
        if len(ratios) < 2:
            return [missing(what, *rows)]
        names = list(ratios)
        findings = []
        for before, after in pairwise(names):
            rise = ratios[after] - ratios[before]
            detail = f"{ratios[after]:.2f} times as frequent, {ratios[before]:.2f} times for {before}"
            findings.append(Finding(f"{what}: {after}", rise > 0, detail, rise / max(ratios.values())))
        return findings

    return check


def strongest_links(pairs: Sequence[tuple[str, str]], devices: Sequence[str]) -> Check:
    """The links that are strongest both ways, by the lower of the two probabilities, are ``pairs`` in this order."""

    def check(evidence: Evidence) -> list[Finding]:
        what = "strongest both ways: " + "; ".join(" and ".join(pair) for pair in pairs)
        strengths = {}
        for place, one in enumerate(devices):
            for other in devices[place + 1 :]:
                both = _both_ways(evidence, one, other)
                if both is not None:
                    strengths[one, other] = min(both)
        wanted = [tuple(sorted(pair, key=list(devices).index)) for pair in pairs]
        if any(pair not in strengths for pair in wanted):
            return [missing(what, "transitions both ways")]
        found = sorted(strengths, key=lambda pair: -strengths[pair])
        detail = "; ".join(f"{' and '.join(pair)} {strengths[pair]:.1f} %" for pair in found[: len(pairs)])
        return [Finding(what, found[: len(pairs)] == wanted, detail)]

    return check


def one_sided(source: str, target: str) -> Check:
    """Going from ``source`` to ``target`` is likely, going back hardly ever happens."""

    def check(evidence: Evidence) -> list[Finding]:
        return _linked(
            evidence, source, target, "one-sided", f"from {source} to {target}, and hardly ever back"
        )

    return check


def weak(one: str, other: str) -> Check:
    """A switch between two devices hardly ever happens, either way."""

    def check(evidence: Evidence) -> list[Finding]:
        return _linked(evidence, one, other, "weak", f"hardly ever between {one} and {other}")

    return check


def _linked(evidence: Evidence, source: str, target: str, kind: str, what: str) -> list[Finding]:
    from diptych.commerce.purchase_intent.statistics import DescribeOptions
    from diptych.commerce.purchase_intent.statistics.intervals import link

    both = _both_ways(evidence, source, target)
    if both is None:
        return [missing(what, f"transitions between {source} and {target}")]
    there, back = both
    bounds = DescribeOptions()
    found = link(there / 100, back / 100, likely=bounds.likely, near_zero=bounds.near_zero)
    holds = found == kind and (kind != "one-sided" or there > back)
    return [Finding(what, holds, f"{there:.1f} % there, {back:.1f} % back: {found}")]


def _both_ways(evidence: Evidence, one: str, other: str) -> tuple[float, float] | None:
    found = known(evidence, [(row_name(one), f"to {other}"), (row_name(other), f"to {one}")])
    return (
        (found[row_name(one), f"to {other}"], found[row_name(other), f"to {one}"])
        if len(found) == 2
        else None
    )


_DEVICES = [row_name(name) for name in DEVICES]
_BY_RATE = ["pc", "tablet", "game-console", "smartphone", "tv"]
_POPULAR = ("smartphone", "pc", "tablet")
_LINKS = "Section 6.4.4; likely or hardly ever as diptych.commerce.purchase_intent.statistics.intervals has it: 1 %"


def _to(device: str) -> Place:
    return row_name(device), f"to {device}"


_USERS = ("purchasers", "non-purchasers")

_VISITORS = (
    Claim(
        "several",
        "More than one device is more frequent among purchasers",
        above(("several", _USERS[0]), ("several", _USERS[1])),
        "Section 6.4.4",
    ),
    Claim(
        "single",
        "The majority of both have a single device",
        all_of(*(above(("one", users), ("several", users)) for users in _USERS)),
        "Section 6.4.4",
    ),
    Claim(
        "grows",
        "As the number of devices increases, the difference grows",
        difference_grows(["two", "three", "four", "five"], *_USERS),
        "Section 6.4.4; by how many times as frequent a number of devices is among purchasers",
    ),
)

_DEVICE_CLAIMS = (
    Claim(
        "PC",
        "The PC has the highest conversion rate",
        highest(column_of("standardised", _DEVICES), [("pc", "standardised")], "PC highest"),
        "Section 6.4.4",
    ),
    Claim(
        "order",
        "Then come tablet, game console and smartphone; the TV has the lowest",
        rates_fall(_BY_RATE),
        "Section 6.4.4",
    ),
    Claim(
        "purchases",
        "Purchase sessions are more frequent on PCs and tablets, less on smartphones",
        all_of(more_in_purchases("pc"), more_in_purchases("tablet"), less_in_purchases("smartphone")),
        "Section 6.4.4",
    ),
    Claim(
        "rare",
        "Purchase sessions are less frequent on game consoles and TVs",
        all_of(less_in_purchases("game-console"), less_in_purchases("tv")),
        "Section 6.4.4; the printed shares have one digit",
    ),
)

_SWITCHES = (
    Claim(
        "stay",
        "To stay on the device is the most likely, for all devices but the TV",
        all_of(
            *(
                highest([(row_name(name), f"to {to}") for to in DEVICES], [_to(name)], f"{name}: most stay")
                for name in DEVICES
                if name != "tv"
            )
        ),
        "Section 6.4.4",
    ),
    Claim(
        "TV",
        "From the TV most go to a PC, more than stay",
        highest([("tv", f"to {to}") for to in DEVICES], [("tv", "to pc")], "TV: most go to a PC"),
        "Section 6.4.4",
    ),
    Claim(
        "PC stays",
        "Most stay on the PC, fewer on the smartphone, fewer still on the tablet",
        all_of(
            highest([_to(name) for name in DEVICES], [_to("pc")], "most stay on the PC"),
            above(_to("smartphone"), _to("tablet"), "more stay on smartphones than on tablets"),
        ),
        "Section 6.4.4: 5.03 and 17.28 % lower",
    ),
    Claim(
        "leave",
        "Fewest stay on the TV, and second fewest on the game console",
        all_of(
            *(
                above(_to(name), _to("game console"), f"more stay on {name} than on game consoles")
                for name in _POPULAR
            ),
            above(_to("game console"), _to("tv"), "more stay on game consoles than on TVs"),
        ),
        "Section 6.4.4",
    ),
    Claim(
        "strong",
        "The strongest links are between smartphone and PC, PC and tablet, smartphone and tablet",
        strongest_links([("smartphone", "pc"), ("pc", "tablet"), ("smartphone", "tablet")], list(DEVICES)),
        "Section 6.4.4; by the lower of the two probabilities",
    ),
    Claim(
        "one-sided",
        "From TV to every other device and from the game console to smartphone and PC, but hardly ever back",
        all_of(
            *(one_sided("tv", name) for name in DEVICES if name != "tv"),
            one_sided("game console", "smartphone"),
            one_sided("game console", "pc"),
        ),
        _LINKS,
    ),
    Claim(
        "weak",
        "Between game console and tablet there is hardly ever a switch",
        weak("game console", "tablet"),
        _LINKS,
    ),
    Claim(
        "to popular",
        "A tablet is left for a PC, and for a smartphone, more often than the other way round",
        all_of(
            above(("tablet", "to pc"), ("pc", "to tablet"), "more go from tablet to PC than back"),
            above(
                ("tablet", "to smartphone"),
                ("smartphone", "to tablet"),
                "more go from tablet to smartphone than back",
            ),
        ),
        "Section 6.4.4: 656.86 and 399.17 % more",
    ),
)

TABLE_6_3 = STUDIES.add(
    Study(
        name="intent.table-6.3",
        asks="How many devices have purchasers and other known visitors?",
        topic="devices per visitor",
        rows=(
            log_row("several", "> 1 device"),
            *(
                log_row(name, f"{number} device{'s' if number > 1 else ''}")
                for number, name in enumerate(("one", "two", "three", "four", "five"), 1)
            ),
        ),
        columns=tuple(Column(name, decimals=2) for name in _USERS),
        published=(published_table("intent", "table-6.3"), published_table("intent", "text-table-6.3")),
        claims=_VISITORS,
        settings=COUNTING,
        measure=Counted("device-counts", device_counts, ("devices-per-visitor",)),
        notes=("Who comes more often has more occasions to come with another device.",),
        tables=tables_of("devices-per-visitor"),
        measured_by=COUNTED_BY,
    )
)

TABLE_6_4 = STUDIES.add(
    Study(
        name="intent.table-6.4",
        asks="On which devices are things bought?",
        topic="sessions and purchases per device",
        rows=device_rows(),
        columns=SHARES,
        published=(published_table("intent", "table-6.4"), published_table("intent", "text-table-6.4")),
        claims=_DEVICE_CLAIMS,
        settings=COUNTING,
        measure=Counted("devices", device_shares, ("devices",)),
        notes=(BESIDES,),
        figure=device_bars(),
        tables=tables_of("devices"),
        measured_by=COUNTED_BY,
    )
)

FIGURE_6_5 = STUDIES.add(
    Study(
        name="intent.figure-6.5",
        asks="From which device to which do visitors go before they buy?",
        topic="changes of device before a purchase",
        rows=device_rows(),
        columns=tuple(Column(f"to {name}", decimals=2) for name in DEVICES),
        published=(published_table("intent", "figure-6.5"),),
        claims=_SWITCHES,
        settings=COUNTING,
        measure=Counted("transitions", transitions, ("device-transitions",)),
        notes=(
            "A row is the device of the session before, of visitors who are known; its numbers add up to 100.",
        ),
        tables=tables_of("device-transitions"),
        measured_by=COUNTED_BY,
    )
)
