"""What is wrong with a recipe, in words a person can use."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from diptych.core.errors import RecipeError


def recipe_error(name: str, error: ValidationError, values: Any, recipe: type[BaseModel]) -> RecipeError:
    """The first thing that is wrong, in one line, with the keys there are when one is unknown."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the recipe"
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        known = ", ".join(_known_keys(first["loc"][:-1], values, recipe))
        return RecipeError(f"{name}: unknown key {where!r}{more}", f"known there: {known}")
    message = first["msg"].removeprefix("Value error, ")
    return RecipeError(f"{name}: {where}: {message}{more}", f"got {first['input']!r}"[:200])


def _known_keys(path: tuple[int | str, ...], values: Any, model: type[BaseModel]) -> list[str]:
    """The keys of the section at ``path``; where there are several kinds of it, of the kind that was meant."""
    for part in path:
        values = values[part] if isinstance(values, dict | list) else None  # type: ignore[index]
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        candidates = (annotation, *getattr(annotation, "__args__", ()))
        kinds = [kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)]
        meant = values.get("kind") if isinstance(values, dict) else None
        model = next((kind for kind in kinds if _default_kind(kind) == meant), kinds[0])
    return sorted(model.model_fields)


def _default_kind(section: type[BaseModel]) -> Any:
    field = section.model_fields.get("kind")
    return None if field is None else field.default
