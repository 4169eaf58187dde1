"""Analyses of a trained encoder and its objective; what needs torch is imported when it is used."""

from typing import TYPE_CHECKING, Any

from diptych.analysis.cocos_report import CocosReport

if TYPE_CHECKING:
    from diptych.analysis.cocos import cocos_over, count, gradient_weights

__all__ = ["CocosReport", "cocos_over", "count", "gradient_weights"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from diptych.analysis import cocos

    return getattr(cocos, name)
