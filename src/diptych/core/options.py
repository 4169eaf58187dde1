"""Options: one typed model per thing that can be set; a fault is one line that names the keys there are.

A subclass of :class:`Options` declares keys, types, bounds and defaults. A recipe's section, a file's
header and what the command line passes on are checked by it once, where they enter.
"""

import shlex
import tomllib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from diptych.core.errors import DiptychError, UsageError, nearest


class Options(BaseModel):
    """Values with types and bounds: unknown keys are refused, and no value changes later."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls, values: Any, name: str, error: type[DiptychError] = UsageError, fix: str = "") -> Self:
        """Return the checked options.

        Args:
            values: a mapping of keys to values, sections nested.
            name: what is checked, which the message opens with: a file, a recipe's name, a command's option.
            error: raised for the first fault, with the number of further ones.
            fix: what to do; without it the keys there are, or the value that was given.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as wrong:
            raise _fault(cls, values, wrong, name, error, fix) from None


_OF_COMMANDS = ("argument", "default", "envvar", "hidden", "metavar", "names")


def parameter(default: Any, description: str, /, *flags: str, **more: Any) -> Any:
    """Return a field that a command takes (``...``: no default); ``more``: see :mod:`diptych.cli.verbs`, and bounds."""
    extra = {key: more.pop(key) for key in _OF_COMMANDS if key in more}
    extra |= {"flags": list(flags)} if flags else {}
    return Field(default, description=description, json_schema_extra=extra, **more)


def parse_values(given: Iterable[str] | None, flag: str) -> dict[str, Any]:
    """Return ``KEY=VALUE`` texts as values: TOML where they are TOML, texts where not, None for ``KEY=``."""
    values: dict[str, Any] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag} {text!r} is not KEY=VALUE", f"e.g. {flag} batches.size=64")
        try:
            values[key] = tomllib.loads(f"value = {value}")["value"] if value else None
        except tomllib.TOMLDecodeError:
            values[key] = value
    return values


def flags_of(key: str, field: Any) -> list[str]:
    return (field.json_schema_extra or {}).get("flags") or [f"--{key.rstrip('_').replace('_', '-')}"]


def command_line(words: Sequence[object], *given: Options, left_out: Collection[str] = ()) -> str:
    """Return a command as it is typed: its first words, then every option that was given but ``left_out``."""
    parts = [str(word) for word in words]
    for options in given:
        for key, field in type(options).model_fields.items():
            value = getattr(options, key)
            if key not in left_out and value != field.get_default(call_default_factory=True):
                flag = flags_of(key, field)[0]
                if isinstance(value, bool):
                    parts.append(flag if value else f"--no-{flag[2:]}")
                    continue
                for one in value if isinstance(value, list | tuple) else [value]:
                    parts += [flag, str(one).removesuffix(".0") if isinstance(one, float) else str(one)]
    return shlex.join(parts)


def _fault(
    options: type[Options],
    values: Any,
    wrong: ValidationError,
    name: str,
    error: type[DiptychError],
    fix: str,
) -> DiptychError:
    first = wrong.errors(include_url=False)[0]
    where = ".".join(str(part)[:60] for part in first["loc"])
    more = f"; {wrong.error_count() - 1} more" if wrong.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        known = _known_keys(first["loc"][:-1], values, options)
        section = where.rpartition(".")[0]
        hint = nearest(where, [f"{section}.{key}" if section else key for key in known])
        return error(
            f"{name}: unknown key {where!r}{more}", f"{hint}known there: {', '.join(known) or 'none'}"
        )
    message = first["msg"].removeprefix("Value error, ")
    place = f"{name}: {where}" if where else name
    given = "" if where == "" and isinstance(values, dict) else f"got {first['input']!r}"[:200]
    return error(f"{place}: {message}{more}", fix or given)


def _known_keys(path: tuple[int | str, ...], values: Any, model: type[BaseModel]) -> list[str]:
    """Return the keys of the section at ``path``; where a section has several kinds, of the kind that was given."""
    for part in path:
        values = values[part] if isinstance(values, dict | list) else None  # type: ignore[index]
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        candidates = (annotation, *getattr(annotation, "__args__", ()))
        kinds = [kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)]
        given = values.get("kind") if isinstance(values, dict) else None
        named = {getattr(kind.model_fields.get("kind"), "default", None): kind for kind in reversed(kinds)}
        model = named.get(given, kinds[0])
    return sorted(model.model_fields)
