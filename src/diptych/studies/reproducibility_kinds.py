"""Checks of thesis chapter 2's claims across kinds of collections: scene-centric and object-centric."""

from __future__ import annotations

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence
from diptych.studies.orders import Agreement, agreement, order_in
from diptych.studies.reproducibility_orders import (
    COLUMNS,
    PAIR,
    RECALL_COLUMNS,
    measured_orders,
    printed_orders,
    verdict_of,
)
from diptych.studies.reproducibility_tree import tree_of


def ahead_everywhere(better: str, worse: str, kind: str) -> Check:
    """``better`` is ahead in every column on every collection of a kind."""

    def check(evidence: Evidence) -> list[Finding]:
        names = [name for name, shows in evidence.centric.items() if shows == kind]
        findings = []
        for name in names or ["a collection"]:
            for column in COLUMNS:
                order = order_in(evidence, (better, worse), f"{name} {column}")
                what = f"{better} beats {worse} in {name} {column}"
                if order is None:
                    findings.append(missing(what, f"{kind}-centric collections of {better} and {worse}"))
                else:
                    findings.append(Finding(what, order.apart > 0, f"{order.apart:+.2f}", order.apart))
        return findings

    return check


def mostly_ahead(better: str, worse: str, kind: str) -> Check:
    """``better`` is ahead in more than half of the recalls on all collections of a kind together."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{better} mostly beats {worse} on {kind}-centric collections"
        names = [name for name, shows in evidence.centric.items() if shows == kind]
        orders = [
            order
            for name in names
            for column in RECALL_COLUMNS
            if (order := order_in(evidence, (better, worse), f"{name} {column}")) is not None
        ]
        if not orders:
            return [missing(what, f"a {kind}-centric collection")]
        won = sum(order.apart > 0 for order in orders)
        share = won / len(orders)
        return [Finding(what, share > 0.5, f"{won} of {len(orders)} recalls", share - 0.5)]

    return check


def alone(dataset: str, ahead: str, behind: str) -> Check:
    """On ``dataset`` one row is ahead in every recall, on every other collection the other one."""

    def check(evidence: Evidence) -> list[Finding]:
        findings, seen = [], set()
        for name in evidence.centric:
            first, second = (ahead, behind) if name.lower() == dataset else (behind, ahead)
            for column in RECALL_COLUMNS:
                order = order_in(evidence, (first, second), f"{name} {column}")
                if order is not None:
                    seen.add(name.lower() == dataset)
                    what = f"{first} beats {second} in {name} {column}"
                    findings.append(Finding(what, order.apart > 0, f"{order.apart:+.2f}", order.apart))
        if seen != {True, False}:
            return [missing(f"{dataset} is the odd one out", dataset, "another collection")]
        return findings

    return check


def only_partly(question: str) -> Check:
    """Orders agree in some comparisons and not in others, in both directions together."""

    def check(evidence: Evidence) -> list[Finding]:
        ours = measured_orders(evidence)
        tree = tree_of(evidence.centric)
        if question == "generalised":
            what = "orders on scene-centric collections are found again on object-centric ones, but not all"
            found = verdict_of(tree, ours, ours)
        else:
            what = "the originals' orders are found again on object-centric collections, but not all"
            original = printed_orders("original")
            found = sum(
                (verdict_of(leaf, ours, original) for leaf in tree.leaves if leaf.centric == "object"),
                start=Agreement(0, 0),
            )
        if not found.of:
            return [missing(what, "a scene-centric and an object-centric collection")]
        share = found.same / found.of
        return [Finding(what, found.word == "partly", f"{found} comparisons", min(share, 1 - share))]

    return check


def replicated_from(dataset: str) -> Check:
    """The order here on ``dataset`` is that on every object-centric collection, in every recall."""

    def check(evidence: Evidence) -> list[Finding]:
        ours = measured_orders(evidence)
        name = next((one for one in evidence.centric if one.lower() == dataset), dataset)
        found = agreement(
            (ours.of(name, column), ours.of(other, column))
            for other in ours.on("object")
            for column in RECALL_COLUMNS
        )
        what = f"the order on {dataset} is that on object-centric collections"
        if not found.of:
            return [missing(what, dataset, "an object-centric collection")]
        return [Finding(what, found.word == "holds", f"{found} comparisons", found.same / found.of - 1)]

    return check


def lower_on_objects() -> Check:
    """Each row's score on every object-centric collection is below that on every scene-centric one."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        kinds = {
            kind: [name for name, shows in evidence.centric.items() if shows == kind]
            for kind in ("scene", "object")
        }
        for row in PAIR:
            for column in RECALL_COLUMNS:
                what = f"{column} of {row} is lower on object-centric collections"
                scene, objects = (
                    {name: one.mean for name in names if (one := evidence.figure(row, f"{name} {column}"))}
                    for names in (kinds["scene"], kinds["object"])
                )
                if not scene or not objects:
                    findings.append(missing(what, "a collection of each kind"))
                    continue
                low, high = (
                    min(scene, key=lambda name: scene[name]),
                    max(objects, key=lambda name: objects[name]),
                )
                detail = f"at most {objects[high]:.1f} ({high}), at least {scene[low]:.1f} ({low})"
                apart = scene[low] - objects[high]
                findings.append(Finding(what, apart > 0, detail, apart / 100))
        return findings

    return check
