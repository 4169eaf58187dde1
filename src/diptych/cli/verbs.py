"""Verbs from option models: a parameter that is an :class:`~diptych.core.options.Options` becomes an option per field.

::

    class EmbedOptions(Options):
        processes: int = Field(1, ge=1, description="Processes that share the work.")

    def embed(model: Model, data: DataSpec, options: EmbedOptions) -> None:
        \"\"\"Embed a dataset.

        Examples:
            diptych embed runs/flickr8k
        \"\"\"

Names, help, defaults and bounds come from the fields. ``json_schema_extra`` may hold ``flags`` (names of the option),
``argument`` (it is positional), ``metavar``, ``default`` (what help prints as the default), ``envvar`` (a variable of
the environment that may hold the value), ``names`` (the ``module:REGISTRY`` that a shell completes from), ``hidden``.
"""

import ast
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from pydantic import Field
from pydantic_core import PydanticUndefined
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from diptych.cli import plain
from diptych.cli.console import output, progress
from diptych.core.errors import UsageError
from diptych.core.extras import missing_library
from diptych.core.options import Options, flags_of

Verb = Callable[..., None]
_WORDS: dict[Any, str] = {str: "TEXT", int: "N", float: "X", Path: "PATH"}
# What the parser raises; its module is Typer's own or Click's.
_WRONG_USE: Any = typer.BadParameter.__mro__[1]


class OutputOptions(Options):
    """Options of every verb."""

    as_json: bool = Field(
        False,
        description="Print tables, lines and next steps as one JSON object.",
        json_schema_extra={"flags": ["--json"]},
    )
    quiet: bool = Field(
        False, description="Print only tables and errors.", json_schema_extra={"flags": ["--quiet", "-q"]}
    )


class Verbs(TyperGroup):
    """A group whose commands are imported when they are needed: ``name → module:function``, or a group.

    A name may have two words, the first of which is a command too: ``index add`` besides ``index``.
    """

    tree: Mapping[str, str | TyperGroup]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict(self.tree)  # type: ignore[arg-type]  # the names that a typo is compared with

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.tree)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        found = self.tree.get(cmd_name)
        if not isinstance(found, str):
            return found
        module, function = found.split(":")
        return command_of(getattr(importlib.import_module(module), function), cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if " ".join(args[:2]) in self.tree:
            args = [" ".join(args[:2]), *args[2:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command and its first line, which is read from its file: nothing is imported."""
        rows = [
            (name, _first_line(*one.split(":")) if isinstance(one, str) else one.short_help or "")
            for name, one in self.tree.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_line(module: str, function: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    tree = ast.parse(Path(str(spec.origin)).read_text(encoding="utf-8"))
    found = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == function)
    return plain((ast.get_docstring(found) or "").partition("\n")[0].replace("``", ""))


def group(
    name: str,
    help: str,
    tree: Mapping[str, str | TyperGroup],
    *,
    callback: Callable[..., None] = lambda: None,
    add_completion: bool = False,
    epilog: str | None = None,
) -> TyperGroup:
    """Return a group of verbs; ``help`` says when it is needed, ``callback`` takes the group's own options."""
    app = typer.Typer(
        name=name,
        help=plain(help),
        short_help=plain(help),
        cls=type("Verbs", (Verbs,), {"tree": tree}),
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        callback=callback,
        add_completion=add_completion,
        epilog=epilog,
    )
    made = get_command(app)
    assert isinstance(made, TyperGroup)
    return made


def run(app: TyperGroup) -> int:
    """Run the command line, and return its exit code.

    Raises:
        UsageError: an unknown command or option, a value that an option cannot take, or a missing library.
    """
    try:
        code = app(prog_name="diptych", standalone_mode=False)
    except typer.Abort:
        return 130
    except ModuleNotFoundError as error:
        raise missing_library(error, "this command") from None
    except _WRONG_USE as error:
        context, message = error.ctx, error.format_message().rstrip(".").replace("Value error, ", "")
        if type(error).__name__ == "NoArgsIsHelpError" or context is None:
            error.show()
            return 2
        fix = f"see {context.command_path} --help"
        if "such option" in message:
            flags = [flag for one in context.command.params for flag in one.opts if flag.startswith("--")]
            fix += f"; its options: {', '.join(flags)}"
        raise UsageError(message, fix) from None
    return code if isinstance(code, int) else 0


def command_of(function: Verb, name: str) -> TyperCommand:
    hints = get_type_hints(function, include_extras=True)
    models: dict[str, type[Options]] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if inspect.isclass(hint) and issubclass(hint, Options):
            models[parameter.name] = hint
            parameters |= {key: _parameter(key, field) for key, field in hint.model_fields.items()}
        else:
            named = parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            parameters[parameter.name] = named

    parameters |= {key: _parameter(key, field) for key, field in OutputOptions.model_fields.items()}

    def command(**values: Any) -> None:
        printed = {key: values.pop(key) for key in OutputOptions.model_fields}
        for argument, model in models.items():
            own = {key: values.pop(key) for key in model.model_fields}
            values[argument] = model.read(own, f"diptych {name}")
        with output(**printed), progress():
            function(**values)

    ordered = sorted(parameters.values(), key=lambda one: one.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in ordered}
    command.__doc__ = _help(plain(inspect.getdoc(function) or ""))
    app = typer.Typer(
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.command(name, short_help=command.__doc__.partition("\n")[0])(command)
    made = get_command(app)
    assert isinstance(made, TyperCommand)
    return made


def _parameter(key: str, field: Any) -> inspect.Parameter:
    extra: dict[str, Any] = field.json_schema_extra or {}
    default = field.get_default(call_default_factory=True)
    nothing = default is False or default in (None, PydanticUndefined, [], (), "")
    annotation = _listed(field.annotation)
    about: dict[str, Any] = {
        "help": plain(field.description or ""),
        "metavar": extra.get("metavar", _metavar(annotation)),
        "show_default": extra.get("default", not nothing),
        "envvar": extra.get("envvar"),
        "hidden": extra.get("hidden", False),
    }
    if "names" in extra:
        about["autocompletion"] = completion(extra["names"])
    if extra.get("argument"):
        made = typer.Argument(**about)
    else:
        flags = flags_of(key, field)
        if field.annotation is bool and default:
            flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
        ends = [(one, end) for one in field.metadata for end in ("ge", "le") if hasattr(one, end)]
        about |= {{"ge": "min", "le": "max"}[end]: getattr(one, end) for one, end in ends}
        made = typer.Option(*flags, **about)
    if default is PydanticUndefined:
        default = inspect.Parameter.empty
    elif isinstance(default, tuple):
        default = list(default)
    return inspect.Parameter(
        key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, made]
    )


def _listed(annotation: Any) -> Any:
    """Return a field's type as the parser knows it, which takes several values only as a list."""
    kinds = get_args(annotation)
    if get_origin(annotation) is tuple:
        return list[kinds[0]]  # type: ignore[valid-type]
    several = [kind for kind in kinds if get_origin(kind) is tuple]
    return _listed(several[0]) | None if several else annotation


def _metavar(annotation: Any) -> str | None:
    """Return what stands for a value in a command's help; None where Typer lists the choices."""
    kinds: dict[Any, str] = {}
    for kind, word in _WORDS.items():
        several: Any = list[kind]  # type: ignore[valid-type]
        kinds |= dict.fromkeys((kind, kind | None, several, several | None), word)
    return kinds.get(annotation)


def completion(names: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        module, _, registry = names.partition(":")
        known = [getattr(one, "name", one) for one in getattr(importlib.import_module(module), registry)]
        return [name for name in known if name.startswith(incomplete)]

    return complete


def _help(text: str) -> str:
    """Return a docstring as help: the commands below "Examples:" as they stand, a line each."""
    head, _, examples = text.replace("``", "").partition("Examples:")
    examples = examples.replace("[bold]", "").replace("[/bold]", "")
    lines = [f"  {line.strip()}" for line in examples.splitlines() if line.strip()]
    return head.strip() + ("\n\n\b\nExamples:\n" + "\n".join(lines) if lines else "")
