"""The pages of granularity, of gradient counts (COCOS), of information audits and of explored protocols."""

from collections.abc import Sequence
from pathlib import Path

from diptych.analysis.cocos_report import CocosReport
from diptych.analysis.granularity.result import (
    Granularity,
    GranularityComparison,
    comparison_table,
    granularity_charts,
    granularity_tables,
)
from diptych.analysis.information.audit import CONDITIONS, Audit
from diptych.analysis.information.questions import READING
from diptych.analysis.information.tables import (
    gap_charts,
    gap_tables,
    kinds_charts,
    kinds_tables,
    question_charts,
    question_tables,
)
from diptych.core.errors import UsageError
from diptych.evaluation.variants.exploration import (
    Exploration,
    axes_tables,
    changes_table,
    explain,
    variants_table,
)
from diptych.report.document import Headline, Page, Section
from diptych.report.figures import write_picture

_VARIANTS = 25  # in the table of a page; the JSON file has all


def granularity_page(
    measured: Sequence[Granularity], comparison: GranularityComparison | None = None
) -> Page:
    """Return the page of one collection, or of two side by side."""
    if len(measured) not in (1, 2):
        raise UsageError(f"a page of {len(measured)} collections", "give one or two")
    features, *examples = granularity_tables(measured)
    names = [one.name for one in measured]
    if comparison is None:
        first = measured[0]
        summary = f"{first.n_captions:,} captions by {len(first.features)} features."
    else:
        found = [one.verdict for one in comparison.differences]
        summary = (
            f"{comparison.second} is significantly finer than {comparison.first} by {found.count('finer')} of"
            f" {len(found)} features and coarser by {found.count('coarser')}."
        )
    sections = [
        Section("Features", [features]),
        *(
            [Section("Comparison", [comparison_table(comparison)], notes=comparison.notes)]
            if comparison
            else []
        ),
        Section("Distributions", granularity_charts(measured)),
        Section("Captions at the extremes", examples),
    ]
    return Page(
        title=f"Granularity of {' and '.join(names)}",
        summary=summary,
        sections=[section for section in sections if section.blocks],
        protocol={one.name: one.line() for one in measured},
    )


def cocos_page(found: CocosReport) -> Page:
    names = {"i2t": "image", "t2i": "text"}
    parts, headlines = [], []
    for way, given in found.counts.items():
        parts.append(f"{given['per_query'].mean:.1f} negatives move {names[way]} queries")
        headlines.append(Headline(f"C^q, {names[way]} queries", given["per_query"].show()))
        idle = given["without_gradient"].show()
        headlines.append(Headline(f"C^0, {names[way]} queries", idle, "without gradient, per batch"))
    charts = found.charts()
    text = "" if charts else "No candidate has any weight in any batch: there is no distribution to draw."
    return Page(
        title=f"Contributing samples of {found.protocol.objective}",
        summary=f"On average {' and '.join(parts)}.",
        headlines=headlines,
        sections=[
            Section("Counts", found.tables()),
            Section("Where the weights lie", charts, text),
        ],
        protocol=found.protocol.line(),
        notes=found.notes(),
    )


def write_cocos(found: CocosReport, folder: Path) -> tuple[Path, Path, Path]:
    """Write gradient counts as JSON, as an image and as a page, and return where they are."""
    table = found.tables()[0]
    words = ["  ".join(row) for row in (table.columns, *table.texts)]
    words += found.lines()
    return (
        found.save(folder / "cocos.json"),
        write_picture(folder / "cocos.png", found.charts(), "\n".join(words)),
        cocos_page(found).save(folder / "cocos.html"),
    )


def audit_page(found: Audit, name: str) -> Page:
    probe, headlines = next(iter(found.protocol.probes)), []
    for condition in found.conditions:
        of = f", {CONDITIONS[condition]}" if len(found.conditions) > 1 else ""
        for kind in ("shared", "specific", "shortcut"):
            held = found.held(condition, "image", kind, probe)
            if held is not None:
                low, high = held.ends
                note = f"{low:.1f}–{high:.1f}; of {held.there:.1f} bits per image"
                headlines.append(Headline(f"{kind}{of}", f"{held.percent:.1f} %", note))
    shortcuts = (
        "With shortcuts is how the encoder was trained; without is what is left when they are taken away. "
    )
    several = shortcuts if len(found.conditions) > 1 else ""
    question = "fact" if found.protocol.content == "facts" else "word"
    sections = [
        Section(
            "Kinds of information",
            [*kinds_charts(found), *kinds_tables({name: found})],
            f"{READING['held']} {several}{READING[found.protocol.content]}",
        ),
        Section(
            "Between one caption and all of them",
            [*gap_charts(found), *gap_tables(found)],
            "An image row that is minimal and sufficient for one caption holds what that caption states; a "
            "task-optimal one holds what any caption of the image states. Bits of facts are added up as if they did "
            "not depend on each other, so these counts are upper bounds.",
        ),
        Section(f"Every {question}", [*question_charts(found), *question_tables(found)]),
    ]
    return Page(
        title=f"Information audit of {name}",
        summary="How much of each kind of information frozen image and caption rows hold.",
        headlines=headlines,
        sections=[section for section in sections if section.blocks],
        protocol=found.protocol.line(),
        notes=found.notes(),
    )


def protocol_page(found: Exploration, name: str = "") -> Page:
    """Return the page of printed numbers: which protocol would explain them, and what their digits say."""
    label, signs = found.target.label or "these numbers", found.digits.sentences()
    about_digits = Section(
        "What the digits say",
        text="" if signs else "Nothing that other digits would not say as well.",
        notes=signs,
    )
    if not found.variants:
        sections = [Section("Printed numbers", found.tables()), about_digits]
        summary = signs[0] if signs else "The digits by themselves say nothing."
        return Page(f"What the digits of {label} say", summary, sections=sections, notes=found.of)
    says = explain(found)[len(found.warnings) :]
    first = says.pop(1 if len(says) > 1 and not found.warnings else 0)
    best = found.explanations[0] if found.explanations else found.nearest
    cells = len(found.target.cells)
    headlines = [
        Headline("default protocol", f"{len(found.as_given.within)} of {cells}", "cells within tolerance"),
        Headline(
            "best explanation" if found.explanations else "nearest variant",
            f"{len(best.within)} of {cells}",
            f"{best.line()}, {100 * best.mean_error:.1f} % off on average",
        ),
        Headline("variants tried", f"{len(found.variants):,}", f"computed from {name}" if name else ""),
    ]
    tried = (
        f"All variants of up to {found.exhaustive} changes were tried; where none prints every cell alike, the nearest"
        " were changed further."
    )
    if found.luck is not None:
        tried += f" {100 * found.luck:.0f} % of made-up targets would be explained with as few changes."
    sections = [
        Section("Verdict", [variants_table(found, _VARIANTS)], notes=says),
        Section("Single changes", [changes_table(found)]),
        about_digits,
        Section("What was tried", axes_tables(found), tried),
    ]
    return Page(
        title=f"Which protocol would explain {label}?",
        summary=" ".join([*(f"{one}." for one in found.warnings), first]),
        headlines=headlines,
        sections=sections,
        notes=found.of,
    )
