"""Checks of thesis section 6.4.1's claims: how lengths of sessions vary, between devices and on each."""

from __future__ import annotations

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence
from diptych.studies.intent_rows import DEVICES, row_name
from diptych.studies.log_checks import known

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
