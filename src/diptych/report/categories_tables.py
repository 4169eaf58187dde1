"""Tables of category-to-image retrieval out of an evaluation's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.core.table import Cell, Table
from diptych.report.page import shorten

BETTER, WORSE = "▲", "▼"
_NONE = Cell("–")
_NAMES = {
    "all": "all categories",
    "most-general": "most general category",
    "most-specific": "most specific category",
}

Numbers = Mapping[str, Any]


def setting_name(setting: str) -> str:
    """As thesis Table 7.1 heads its parts."""
    return _NAMES.get(setting, setting)


def path_text(path: Sequence[str], limit: int = 90) -> str:
    """A category as shops write it."""
    return shorten(" › ".join(path), limit)


def short_path(path: Sequence[str], limit: int = 40) -> str:
    """The most general category and the two most specific ones, for captions."""
    names = path if len(path) <= 3 else [path[0], "…", *path[-2:]]
    return " › ".join(shorten(name, limit) for name in names)


def percent(share: float, digits: int = 1) -> str:
    """In per cent."""
    return f"{100 * share:.{digits}f}"


def measure_table(caption: str, said: Numbers) -> Table:
    """Thesis Table 7.1: a row per model, the best in bold, what differs from the baseline marked, chance below."""
    rows = said["table"]
    names = [name for name in rows[0]["values"] if "hits" not in name]
    verdicts = {(one["run"], one["measure"]): one["verdict"] for one in said["differences"]}
    lines = []
    for row in rows:
        cells = [
            _value(row["values"][name], best_value(said, name), verdicts.get((row["model"], name), ""))
            for name in names
        ]
        most = max(one["products"]["R@1"]["mean"] for one in rows)
        lines.append((Cell(row["label"]), *cells, _value(row["products"]["R@1"], most, "")))
    first = rows[0]
    chance = [Cell(percent(first["values"][name]["chance"])) for name in names]
    lines.append((Cell("chance"), *chance, Cell(percent(first["products"]["R@1"]["chance"]))))
    after = "In per cent; below a value, its standard deviation over seeds of training."
    if said["comparison"]:
        test = str(said["comparison"]).partition("; ")[2]
        after += f" {BETTER} better and {WORSE} worse than {said['baseline'].upper()}: {test}."
    return Table(
        caption,
        ("Model", *names, "Right category"),
        lines,
        groups=(("", 1), ("a category asks for products", len(names)), ("a product asks", 1)),
        after=after,
    )


def interval_table(caption: str, said: Numbers) -> Table:
    """Every measure with its interval over categories, mAP as published code divides it among them."""
    names = list(said["table"][0]["values"])
    lines = [
        (Cell(row["label"]), *(_between(row["values"][name]) for name in names)) for row in said["table"]
    ]
    return Table(
        caption,
        ("Model", *names),
        lines,
        after="mAP@k divides by min(k, relevant products), mAP-hits@k by the relevant products among the first k.",
        folded=True,
    )


def best_value(said: Numbers, measure: str) -> float:
    """The highest of the table."""
    return max(float(row["values"][measure]["mean"]) for row in said["table"])


def _between(one: Mapping[str, Any]) -> Cell:
    ends = "" if one["low"] is None else f"{percent(one['low'])}–{percent(one['high'])}"
    return Cell(percent(one["mean"]), ends)


def _value(one: Mapping[str, Any], best: float, verdict: str) -> Cell:
    mark = {"better": f" {BETTER}", "worse": f" {WORSE}"}.get(verdict, "")
    note = "" if one["sd"] is None else f"±{percent(one['sd'])}"
    return Cell(percent(one["mean"]) + mark, note, strong=one["mean"] == best and best > 0)


def seen_table(
    caption: str, settings: Mapping[str, Numbers], models: Sequence[str], *, folded: bool
) -> Table:
    """Thesis Table 7.3: categories that training saw and others; of some models in every setting."""
    lines: list[tuple[Cell, ...]] = []
    names: list[str] = []
    for setting, said in settings.items():
        labels = {row["model"]: row["label"] for row in said["table"]}
        names = list(said["table"][0]["values"])
        for model in models:
            for one in said["seen"].get(model, ()):
                what = "seen" if one["group"] else "unseen"
                lines.append(
                    (
                        Cell(f"{labels[model]}, {what}", setting_name(setting)),
                        Cell(f"{one['categories']:,.0f}"),
                        *(Cell(percent(one["values"][name]["mean"])) for name in names),
                    )
                )
    return Table(caption, ("Model", "Categories", *names), lines, folded=folded)


def error_table(
    caption: str, settings: Mapping[str, Numbers], models: Sequence[str], *, folded: bool
) -> Table:
    """Thesis Table 7.2, with what the first product's category is to the one that asked."""
    kinds = ("ancestor", "descendant", "sibling", "same tree", "other tree")
    lines = []
    for setting, said in settings.items():
        labels = {row["model"]: row["label"] for row in said["table"]}
        for model in models:
            errors = said["errors"][model]
            counts, runs = errors["all"], errors["runs"]
            lines.append(
                (
                    Cell(labels[model], setting_name(setting)),
                    *(
                        _mean(counts[name], runs)
                        for name in ("asked", "right", "nothing", "same_tree", "other_tree")
                    ),
                    *(_mean(counts["kinds"].get(kind, 0), runs) for kind in kinds[:4]),
                )
            )
    return Table(
        caption,
        (
            "Model",
            "Asked",
            "Right",
            "None found",
            "Same tree",
            "Other tree",
            "Above",
            "Below",
            "Sibling",
            "Else",
        ),
        lines,
        groups=(("", 4), ("wrong", 2), ("wrong in the same tree: the category found is", 4)),
        after="Counts of categories by their first product, the mean over seeds of training.",
        folded=folded,
    )


def _mean(count: int, runs: int) -> Cell:
    return Cell(f"{count / runs:,.0f}" if count % runs == 0 else f"{count / runs:,.1f}")


def sibling_table(caption: str, pairs: Sequence[Mapping[str, Any]], runs: int, most: int = 10) -> Table:
    """Siblings that products are taken for each other's."""
    lines = [
        (
            Cell(
                f"{shorten(one['left'][-1], 40)} / {shorten(one['right'][-1], 40)}",
                path_text(one["left"][:-1]),
            ),
            _mean(one["left_as_right"], runs),
            _mean(one["right_as_left"], runs),
            Cell(f"{one['products'] / runs:,.0f}"),
            Cell(
                percent(one["confused"] / one["products"]),
                shade=one["confused"] / one["products"],
                colour="orange",
            ),
        )
        for one in pairs[:most]
    ]
    return Table(
        caption,
        ("A / B", "A taken for B", "B taken for A", "Products", "% confused"),
        lines,
        after="Each test product asks for its category among those that ask; the mean over seeds of training.",
    )
