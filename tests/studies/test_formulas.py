"""Formulas and claims: four answers, by what numbers can tell."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import StorageError
from diptych.studies.claims import Claim, judge
from diptych.studies.evidence import KEPT, Evidence, Figure, Formula, Kept


def evidence(numbers, *, exact=True, sd=None, seeds=1, **more):
    figures = {
        row: {column: Figure(value, sd, seeds) for column, value in columns.items()}
        for row, columns in numbers.items()
    }
    return Evidence(figures, exact=exact, **more)


def test_a_formula_of_printed_numbers():
    for text, status in [
        ("[a: x] > [b: x]", "holds"),
        ("[b: x] > [a: x]", "fails"),
        ("[a: x] > [a: x]", "undecided"),
        ("[a: x] >= [a: x]", "holds"),
        ("1.9 <= [a: x] / [b: x] <= 2.1", "holds"),
        ("1.9 <= [a: x] / [b: x] < 2", "undecided"),
        ("2.1 <= [a: x] / [b: x] <= 3", "fails"),
        ("mean([a: $both]) == 1", None),
        ("mean([a: $both]) > mean([$rows: x])", "holds"),
        ("[a: x] - [b: x] > [a: y] - [b: y]", "fails"),
        ("abs(-[a: x]) > max([$rows: y])", "fails"),
        ("[a: x] > [c: x]", "not tested"),
        ("[a: x] > [a: z]", "not tested"),
        ("[a: x] / [b: y] > 1", "not tested"),
        ("__import__('os') > 1", None),
        ("[a: x] + 1", None),
        ("[a: x] ** 2 > 1", None),
    ]:
        numbers = evidence({"a": {"x": 4.0, "y": 6.0}, "b": {"x": 2.0, "y": 0.0}})
        lists = {"both": ["x", "y"], "rows": ["a", "b"]}
        if status is None:
            with pytest.raises(StorageError, match="is no formula"):
                Formula.parse(text, lists=lists)
        else:
            assert Formula.parse(text, lists=lists).judge(numbers).status == status


def test_one_seed_cannot_tell_a_point_or_two():
    one, nine = {}, {"sd": 0.3, "seeds": 9}
    for gap, status, spread in [
        *((1.0, "undecided", one), (2.0, "undecided", one), (4.0, "holds", one), (-4.0, "fails", one)),
        (1.0, "holds", nine),
    ]:
        numbers = evidence({"a": {"i2t R@1": 30.0 + gap}, "b": {"i2t R@1": 30.0}}, exact=False, **spread)
        found = Formula.parse("[a: i2t R@1] > [b: i2t R@1]").judge(numbers)
        assert found.status == status
        assert "p = " in found.detail or "p < " in found.detail


def test_the_error_is_that_of_seeds_by_welch():
    from scipy.stats import ttest_ind

    one, other = [31.0, 32.0, 33.5], [30.0, 30.5, 32.0]
    figures = {"a": {"x": Figure.of(one)}, "b": {"x": Figure.of(other)}}
    p = ttest_ind(one, other).pvalue  # pooled over the rows of the column
    assert f"p = {p:.2g}" in Formula.parse("[a: x] > [b: x]").judge(Evidence(figures)).detail


def test_intervals_are_errors_and_what_is_fixed_has_none():
    apart = {"a": {"x": 2.0, "x low": 1.9, "x high": 2.1}, "b": {"x": 1.0, "x low": 0.9, "x high": 1.1}}
    close = {**apart, "b": {"x": 1.95, "x low": 1.8, "x high": 2.1}}
    formula = Formula.parse("[a: x] > [b: x]")
    assert formula.judge(evidence(apart, exact=False)).status == "holds"
    assert formula.judge(evidence(close, exact=False)).status == "undecided"
    bare = {"a": {"x": 1.001}, "b": {"x": 1.0}}
    assert formula.judge(evidence(bare, exact=False, fixed=frozenset("ab"))).status == "holds"


def test_queries_are_paired(tmp_path):
    """The error of a difference is that of the same queries, by images."""
    rng = np.random.default_rng(0)
    images = np.repeat(np.arange(40), 5)
    base = rng.normal(50, 20, 200)
    for name, values in (("a", base + rng.normal(3, 2, 200)), ("b", base)):
        Kept({"x": values}, images).save(tmp_path / name / KEPT)
    figures = {"a": {"x": 53.0}, "b": {"x": 50.0}}
    kept = {name: [tmp_path / name] for name in "ab"}
    numbers = evidence(figures, exact=False, kept=kept, fixed=frozenset("ab"))
    assert Formula.parse("[a: x] > [b: x]").judge(numbers).status == "holds"
    # unpaired, forty pictures say nothing of three points
    assert Formula.parse("[a: x] / [b: x] > 1").judge(numbers).status == "undecided"


ABC = {"a": {"x": 1.0, "y": 5.0}, "b": {"x": 2.0, "y": 4.0}, "c": {"x": 3.0, "y": 4.5}}


def test_a_claim_is_judged():
    for given, status in [
        ({"checks": ("[b] > [a]", "[c] > [b]"), "columns": ("x",)}, "holds"),
        ({"checks": ("[b] > [a]", "[c] > [b]"), "columns": ("x", "y")}, "fails"),
        ({"checks": ("[b] > [a]", "[d] > [b]"), "columns": ("x",)}, "not tested"),
        ({"checks": ("[a] > [b]", "[d] > [b]"), "columns": ("x",)}, "fails"),
        ({"checks": ({"rises": "$rows"},), "columns": ("x",)}, "holds"),
        ({"checks": ({"falls": "$rows"},), "columns": ("y",)}, "fails"),
        ({"checks": ({"falls": "$rows", "slack": 0.6},), "columns": ("y",)}, "fails"),
        ({"checks": ({"falls": "$rows", "slack": 0.5},), "columns": ("y",)}, "undecided"),
        ({"checks": ({"rises": ["a", "d", "c"]},), "columns": ("x",)}, "holds"),
        ({"checks": ({"rises": ["d", "c"]},), "columns": ("x",)}, "not tested"),
        ({"checks": ({"rises": ["[a: x]/[a: y]", "[b: x]/[b: y]"]},)}, "holds"),
        ({"checks": ({"best": "c", "of": "$rows"},), "columns": ("x",)}, "holds"),
        ({"checks": ({"best": ["b", "c"], "of": "$rows"},), "columns": ("x",)}, "holds"),
        ({"checks": ({"least": "b", "of": "$rows"},), "columns": ("y",)}, "holds"),
        ({"checks": ("[{m}: x] < [{m}: y]",), "each": {"m": "rows"}}, "holds"),
        ({"checks": ("[{m.row}: x] < {m.limit}",), "each": {"m": [{"row": "a", "limit": 2}]}}, "holds"),
        ({"checks": ("[{m}: y] > 4.2",), "each": {"m": "rows"}, "more": 0.5}, "holds"),
        ({"checks": ("[{m}: y] > 4.7",), "each": {"m": "rows"}, "more": 0.5}, "fails"),
        ({"checks": ("[{m}: y] > 4.7", "[d: y] > 0"), "each": {"m": "rows"}, "more": 0.5}, "not tested"),
        ({"checks": ("[{m}: x] > 1.5",), "each": {"m": "rows-but-a"}}, "holds"),
        ({"checks": ("[b] > [a]",), "columns": ("x",), "given": "[c: x] > 5"}, "not tested"),
        ({"checks": ("[{best}: x] > 2.5",), "choose": {"best": {"of": "$rows", "by": "x"}}}, "holds"),
        ({"checks": ("[a: x] > 0",), "about": ("a",)}, "not tested"),
        ({"checks": ("[a: {c} x] > 0",), "each": {"c": "collections"}}, "not tested"),
    ]:
        claim = Claim("one", "as it says", lists={"rows": ["a", "b", "c"]}, **given)
        assert judge(claim, evidence(ABC), stand_ins=["a"]).status == status


def test_most_is_undecided_where_what_is_open_decides():
    numbers = evidence({"a": {"i2t R@1": 30.0}, "b": {"i2t R@1": 50.0}, "c": {"i2t R@1": 29.0}}, exact=False)
    claim = Claim("", "", checks=("[b] > [a]", "[a] > [c]"), columns=("i2t R@1",), more=0.5)
    found = judge(claim, numbers)
    decides = "1 of 2 comparisons hold; the first that is open: [a] > [c] in i2t R@1"
    assert (found.status, decides in found.figure) == ("undecided", True)
