"""Thesis chapter 7: printed arithmetic, settings, and how claims are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from diptych.studies import STUDIES, published_table
from diptych.studies.claims import Check, judge
from diptych.studies.cti_checks import (
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
from diptych.studies.cti_rows import MEASURES, row_name
from diptych.studies.study import SettingName
from diptych.studies.verdict import Evidence, Figure, Measured, same_evaluation

CHAPTER_7 = [study for study in STUDIES if study.paper.key == "cti"]


def test_a_catalogue_is_described_by_its_products() -> None:
    on = published_table("cti", "table-7.1").rows[0].on
    assert on.describe() == "xmarket-us test: 38,921 products, 5,471 or 34 or 4,100 categories, by label"
    same = Measured("xmarket-US", "test", protocol="by label", products=38_921, categories=34)
    assert same_evaluation(same, on) == []
    assert same.task == "test, 38,921 products, 34 categories, by label"
    other = replace(same, products=40_000, categories=28, protocol="by path")
    assert same_evaluation(other, on) == [
        "protocol by path, not by label",
        "40,000 products, not 38,921",
        "28 categories, not 5,471 or 34 or 4,100",
    ]


@pytest.mark.parametrize("setting", ["paper", "data", "quick"])
def test_settings_can_be_measured(setting: SettingName) -> None:
    from diptych.studies.catalogues import CatalogueOptions

    for study in CHAPTER_7:
        own = study.settings[setting]
        options = CatalogueOptions.of(own.measure, published=setting == "paper")
        assert (options.training() is None) == (setting == "paper")
        assert (own.products is not None) == (setting == "quick")


GENERAL, SPECIFIC = "most-general", "most-specific"


def evidence(rows: Mapping[str, float | Mapping[str, float]]) -> Evidence:
    """One number for all measures of a row, or its columns."""
    whole = {
        row: given if isinstance(given, Mapping) else dict.fromkeys(MEASURES, given)
        for row, given in rows.items()
    }
    return Evidence({row: {name: Figure(value) for name, value in of.items()} for row, of in whole.items()})


def held(check: Check, rows: Mapping[str, float | Mapping[str, float]]) -> list[bool | None]:
    return [finding.holds for finding in check(evidence(rows))]


@pytest.mark.parametrize("name", ["cti.table-7.1", "cti.table-7.2", "cti.table-7.3", "cti.figure-7.2"])
def test_every_claim_can_hold_and_fail(name: str) -> None:
    """On numbers of rows that rise and that fall, every claim holds on one of several and fails on one."""
    study = STUDIES.get(name)
    columns = [column.name for column in study.columns]
    rows = [row.name for row in study.rows]
    statuses: dict[str, set[str]] = {claim.name: set() for claim in study.claims}
    printed = {row.config: row.cells for row in study.published[0].rows}
    known = {
        row: {
            column: Figure(printed[row][column].value) for column in columns if column in printed.get(row, {})
        }
        for row in rows
    }
    made = [
        Evidence({row: {c: Figure(1 + 90 * abs(hash_of(row, c, n)) ** 2) for c in columns} for row in rows})
        for n in range(60)
    ]
    rising = {row: dict.fromkeys(columns, Figure(1.0 + place)) for place, row in enumerate(rows)}
    falling = {row: dict.fromkeys(columns, Figure(99.0 - place)) for place, row in enumerate(rows)}
    level = {row: dict.fromkeys(columns, Figure(60.0)) for row in rows}
    for one in (*made, Evidence(known), Evidence(rising), Evidence(falling), Evidence(level)):
        for claim in study.claims:
            statuses[claim.name].add(judge(claim, one).status)
    assert all("fails" in found for found in statuses.values()), statuses
    never = {name for name, found in statuses.items() if "holds" not in found}
    assert never <= {"pictures, conclusion"}, never


def hash_of(row: str, column: str, seed: int) -> float:
    """A share in [0, 1) that is the same in every process."""
    import zlib

    return zlib.crc32(f"{row}|{column}|{seed}".encode()) / 2**32


AHEAD = {"clip-i-all": 3.0, "clip-all": 2.0, "clip-i-most-general": 1.0, "clip-most-general": 2.0}
TEXTS = {"bm25-all": 1.0, "clip-all": 2.0, "sentence-all": 1.5}
# 30 of 60 and 10 of 30: half is more than a third, and 30 points behind are more than 20.
KEPT = {
    **{row_name("clip-i", GENERAL): 30.0, row_name("clip-ita", GENERAL): 60.0},
    **{row_name("clip-i", SPECIFIC): 10.0, row_name("clip-ita", SPECIFIC): 30.0},
}
GAINS = {
    **{"clip-i-all": 10.0, "clip-ia-all": 11.0},
    **{"clip-i-most-general": 50.0, "clip-ia-most-general": 60.0},
    **{"clip-i-most-specific": 2.0, "clip-ia-most-specific": 3.0},
}
TREES = {
    "all": {"same tree": 7.0, "different tree": 3.0},
    GENERAL: {"same tree": 0.0, "different tree": 0.0},
}
DEPTHS = {SPECIFIC: {"d = -2": 20.0, "d = -1": 60.0, "d = 0": 20.0, "more general": 80.0}}
SEEN = {"seen-all": 4.0, "unseen-all": 5.0}
ONE = ("P@1",)
LIKE = comparable(("bm25", "clip", "sentence"), "all", 2, ONE)
NOTHING_KEPT = keeps_more_share("clip-i", GENERAL, SPECIFIC, ONE)
GAIN = gains_most("clip-ia", "clip-i", SPECIFIC, ("all", GENERAL), ONE)


@pytest.mark.parametrize(
    ("check", "rows", "expected"),
    [
        (ahead("clip-i", "clip", ("all",)), AHEAD, [True] * 6),
        (ahead("clip-i", "clip", (GENERAL,)), AHEAD, [False] * 6),
        (below("clip-i", "clip", (GENERAL,)), AHEAD, [True] * 6),
        (below("clip-i", "clip", ("all",), ONE), AHEAD, [False]),
        (ahead("clip-i", "clip", (SPECIFIC,), ONE), AHEAD, [None]),
        (ahead("clip-i", "clip", ("all",), ONE), AHEAD | {"clip-all": 3.0}, [None]),  # equal
        (best_in("all", "clip-i", ("clip", "bm25"), ONE), AHEAD, [True, None]),
        (LIKE, TEXTS, [True]),
        (LIKE, TEXTS | {"clip-all": 2.1}, [False]),
        (LIKE, {"bm25-all": 1.0}, [None]),
        (keeps_more_share("clip-i", GENERAL, SPECIFIC), KEPT, [True] * 6),
        (keeps_more_points("clip-i", GENERAL, SPECIFIC), KEPT, [False] * 6),
        (keeps_more_share("clip-i", SPECIFIC, GENERAL), KEPT, [False] * 6),
        (keeps_more_points("clip-i", SPECIFIC, GENERAL), KEPT, [True] * 6),
        (NOTHING_KEPT, KEPT | {row_name("clip-ita", SPECIFIC): 0.0}, [None]),
        (GAIN, GAINS, [True, True]),
        (GAIN, GAINS | {"clip-ia-all": 16.0}, [False, True]),
        (GAIN, GAINS | {"clip-i-most-general": 0.0}, [True, None]),
        (mostly("all", "same tree", "different tree"), TREES, [True]),
        (mostly("all", "different tree", "same tree"), TREES, [False]),
        (mostly(GENERAL, "different tree", "same tree"), TREES, [None]),
        (mostly(SPECIFIC, "different tree", "same tree"), TREES, [None]),
        (mostly_at(SPECIFIC, -1), DEPTHS, [True]),
        (mostly_at(SPECIFIC, 0), DEPTHS, [False]),
        (mostly_at("all", -1), DEPTHS, [None]),
        (share_above(SPECIFIC, "more general", 80), DEPTHS, [True]),
        (share_above(SPECIFIC, "more general", 90), DEPTHS, [False]),
        (share_above("all", "more general", 90), DEPTHS, [None]),
        (seen_over_unseen("all"), SEEN, [False] * 6),
        (seen_over_unseen("all", ONE, "unseen", "seen"), SEEN, [True]),
        (seen_over_unseen(GENERAL, ONE), SEEN, [None]),
        (none_found("unseen-all", ONE), SEEN, [False]),
        (none_found("unseen-all", ONE), SEEN | {"unseen-all": 0.0}, [True]),
        (none_found("unseen-most-general", ONE), SEEN, [None]),
    ],
)
def test_checks_by_hand(
    check: Check, rows: Mapping[str, float | Mapping[str, float]], expected: list[bool | None]
) -> None:
    assert held(check, rows) == expected
