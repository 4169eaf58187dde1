"""How easily something fits."""

from __future__ import annotations

import pytest

from diptych.evaluation.printed import Target
from diptych.evaluation.variants import Change, Variant
from diptych.evaluation.variants.explore import distinct, luck_near, luck_to_the_digit, luck_within

TENTHS = Target.of({"i2t R@1": 10}, 1)


def variant(value: float, choice: str = "", explains: bool = False) -> Variant:
    changes = (Change("axis", choice),) if choice else ()
    cells = ("i2t R@1",) if explains else ()
    return Variant(changes, {"i2t R@1": value}, {"i2t R@1": 0.0}, cells, cells, cells)


def test_targets_between_two_variants() -> None:
    """Between 10 and 40 lies 20, between 10 and 20 14.1, between 20 and 40 28.3: one of three is met."""
    some = [variant(10, "", True), variant(20, "a"), variant(40, "b")]
    assert luck_within(some, TENTHS, 0.05) == pytest.approx(1 / 3)
    assert luck_within(some, TENTHS, 0.5) == pytest.approx(1)
    assert luck_to_the_digit(some, TENTHS, 0.05) == pytest.approx(1 / 3)


def test_variants_that_do_the_same_count_for_nothing() -> None:
    some = [variant(10, "", True), variant(10.1, "a"), variant(10.2, "b"), variant(10.2, "c")]
    assert len(distinct(some)) == 3
    assert luck_within(some, TENTHS, 0.05) is None
    assert luck_within([*some, variant(90, "d")], TENTHS, 0.05) == 0


def test_only_what_explains_counts_and_more_changes_than_needed_are_left_out() -> None:
    deeper = Variant((Change("a", "1"), Change("b", "2")), {"i2t R@1": 20.0}, {"i2t R@1": 1.0}, (), (), ())
    some = [variant(10, "a", True), variant(40, "b")]
    assert luck_within([*some, deeper], TENTHS, 0.05) == luck_within(some, TENTHS, 0.05) == 0
    none = [variant(10), variant(40, "b")]
    assert luck_within(none, TENTHS, 0.05) is None
    assert luck_to_the_digit(none, TENTHS, 0.05) is None


def test_being_near_is_harder() -> None:
    """Between 10 and 40 lies 20: 19.6 is within 5 % of it, 0.5 % are 19.9 to 20.1."""
    some = [variant(10, "", True), variant(19.6, "a"), variant(40, "b")]
    assert luck_within(some, TENTHS, 0.05) == pytest.approx(1 / 3)
    assert luck_near(some, TENTHS, 0.05) == 0
    assert luck_near([*some[:1], variant(19.95, "a"), some[2]], TENTHS, 0.05) == pytest.approx(1 / 3)
    # Printed in whole numbers, 19.6 is 20: as good as any nearness.
    assert luck_near(some, Target.of({"i2t R@1": 10}, 0), 0.05) == pytest.approx(1 / 3)
