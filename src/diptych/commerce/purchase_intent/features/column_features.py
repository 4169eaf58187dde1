"""Features of tables that bring their own columns: each column as it is, a number or one-hot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diptych.commerce.purchase_intent.features.categories import OneHot
from diptych.commerce.purchase_intent.features.declaration import Feature
from diptych.commerce.purchase_intent.features.plain import Plain, column_values

ColumnKind = Literal["number", "text"]


@dataclass(frozen=True)
class ColumnFeature(Feature):
    """A feature that is one column of a view; not in the registry, for only its table knows it.

    Attributes:
        kind: whether the column is a number or a text.
    """

    kind: ColumnKind = "number"


def column_feature(name: str, kind: ColumnKind) -> ColumnFeature:
    """The feature of the view's column ``name``."""
    how = Plain((name,), column_values(name)) if kind == "number" else OneHot(name, name)
    one_hot = "; one column per category of the training sessions"
    return ColumnFeature(
        name=name,
        label=name,
        description="the column as it is" + ("" if kind == "number" else one_hot),
        group="session",
        dynamic=False,
        baseline=False,
        columns=(name,),
        fit=how.fit,
        load=how.load,
        kind=kind,
    )
