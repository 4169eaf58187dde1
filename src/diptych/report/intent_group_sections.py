"""The sections of channels and devices: which sessions become purchases (thesis Tables 6.2 to 6.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.commerce.purchase_intent.statistics import DescribeOptions
from diptych.report import intent_findings as found
from diptych.report.intent_description_tables import device_count_table, group_table
from diptych.report.intent_discretion import Discretion, percent
from diptych.report.intent_group_figures import (
    CLASS_LEGEND,
    MOST_GROUPS,
    class_bars,
    rate_figure,
    standardised_figure,
)
from diptych.report.intent_page import Block, Panels, Section

Rows = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Rows]
"""Statistic → its finished rows; those that were not made are missing."""


def _groups(
    key: str, rows: Rows, discretion: Discretion, options: DescribeOptions
) -> tuple[list[Block], list[str]]:
    """Figures and table of channels or devices."""
    order = sorted(rows, key=lambda row: (-row["sessions"], row[key]))[:MOST_GROUPS]
    shares = {row[key]: _shares(row, discretion) for row in order}
    texts = {row[key]: (percent(row["purchase_share"]), percent(row["other_share"])) for row in order}
    open_rows = [
        row
        for row in order
        if not discretion.small(row["purchase_sessions"], row["sessions"] - row["purchase_sessions"])
    ]
    figures = [
        class_bars(
            f"{key}-shares",
            f"{key.capitalize()}s of both classes",
            shares,
            texts,
            "% of the class's sessions",
        )
    ]
    if discretion.hide_rates:
        values = {row[key]: row["standardised"] for row in open_rows if row["standardised"] is not None}
        if values:
            figures.append(standardised_figure(f"{key}-rates", "Standardised conversion rate", values))
    elif open_rows:
        sessions = sum(row["sessions"] for row in rows)
        overall = sum(row["purchase_sessions"] for row in rows) / sessions if sessions else None
        rates = {row[key]: (row["rate"], row["low"], row["high"]) for row in open_rows}
        figures.append(rate_figure(f"{key}-rates", "Conversion rate", rates, overall))
    return [
        CLASS_LEGEND,
        Panels(figures, 24.0),
        group_table(rows, key, options.ddof, discretion),
    ], found.group_findings(rows, key, discretion)


def _shares(row: Mapping[str, Any], discretion: Discretion) -> tuple[float | None, float | None]:
    """Per cent of purchase sessions and of others; None for what there is not, or is not shown.

    Of few in one class the other's share is not shown either: beside the number of sessions it would tell.
    """
    if discretion.small(row["purchase_sessions"], row["sessions"] - row["purchase_sessions"]):
        return None, None
    buy, other = (
        None if row[name] is None else 100 * row[name] for name in ("purchase_share", "other_share")
    )
    return buy, other


def _standard(ddof: int, table: str) -> str:
    return (
        "A conversion rate is the share of a group's sessions that have a purchase; standardised: less the "
        f"mean of the groups' rates, each group counting once, in their standard deviations (ddof {ddof}). "
        f"Thesis Table {table}."
    )


def channel_section(tables: Tables, discretion: Discretion, options: DescribeOptions) -> Section | None:
    """Channels, of both classes and by rate; None where nobody counted them."""
    rows = tables.get("channels")
    if not rows:
        return None
    blocks, findings = _groups("channel", rows, discretion, options)
    return Section(
        "channels",
        "Channels",
        findings,
        _standard(options.ddof, "6.2"),
        blocks,
        [
            "The rates of thesis Table 6.2 fit ddof 1, those of Table 6.4 and its worked example ddof 0. Its "
            "−0.56 of direct cannot be: such rates add up to 0, those four to −0.41; −0.56 is the smartphone's "
            "of Table 6.4."
        ],
    )


def device_section(tables: Tables, discretion: Discretion, options: DescribeOptions) -> Section | None:
    """Devices of sessions and per visitor; None where nobody counted them."""
    rows, visitors = tables.get("devices"), tables.get("devices-per-visitor")
    blocks: list[Block] = []
    findings: list[str] = []
    if rows:
        blocks, findings = _groups("device", rows, discretion, options)
    if visitors:
        blocks.append(device_count_table(visitors, discretion))
        findings += found.device_count_findings(visitors, discretion)
    if not blocks:
        return None
    return Section(
        "devices",
        "Devices",
        findings,
        (_standard(options.ddof, "6.4") + " " if rows else "")
        + (
            "Devices per visitor are those that a known visitor was seen on in this log; purchasers have "
            "bought at least once in it. Thesis Table 6.3, which says per session and counts per user."
            if visitors
            else ""
        ),
        blocks,
    )
