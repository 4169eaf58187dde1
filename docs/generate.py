"""Generate the reference from the command tree, option models and registries; mkdocstrings fills the API's page."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

API = {
    "Data": "read Collection GroundTruth",
    "Encoders and embeddings": "load encode DualEncoder SparseEncoder EncodedCollection",
    "Training": "train Recipe load_recipe Run Objective ShortcutOptions Shortcuts",
    "Evaluation": "evaluate compare top_k Result explore_rows explore_scores",
    "Analysis": "stress audit gradient_counts gradient_weights perturb_caption perturb_captions",
    "Search": "build_index open_index Searcher sparsify",
    "Studies": "run_study",
    "Exchange": "export as_mteb",
    "Results and errors": "Table DiptychError",
}
"""The public functions and classes of ``diptych`` by section of the API page."""

REGISTRIES = "READERS FAMILIES OBJECTIVES MEASURES PERTURBATIONS ENGINES STUDIES"

NAMES = {
    "Losses": ("diptych.objectives:OBJECTIVES", "`objective.name` of a recipe, `--set objective.name=…`"),
    "Measures": ("diptych.metrics:MEASURES", "`--measure`, `dp.evaluate(…, measures=…)`"),
    "Readers": ("diptych.data.readers:READERS", "`--reader`, `dp.read(…, reader=…)`"),
    "Known datasets": ("diptych.data.known:KNOWN", "`diptych data show`, `diptych data check`"),
    "Encoder families": ("diptych.encoders.family:FAMILIES", "`dp.load(…)`"),
    "Index engines": ("diptych.index:ENGINES", "`--engine`, `dp.build_index(…, engine=…)`"),
    "Perturbations": ("diptych.analysis.perturbations:PERTURBATIONS", "`--perturb`, `dp.stress(…)`"),
    "Features of granularity": (
        "diptych.analysis.granularity.features:FEATURES",
        "`diptych analyse granularity`",
    ),
    "Axes of protocols": ("diptych.evaluation.variants.axes:AXES", "what `diptych analyse protocol` varies"),
    "Extended positives": ("diptych.data.extended_positives:EXTENDED_POSITIVES", "`--positives NAME:PATH`"),
    "Human judgements": ("diptych.data.judgements:JUDGEMENTS", "`--judgements NAME:PATH`"),
    "Studies": ("diptych.studies:STUDIES", "`diptych study run`, `dp.run_study(…)`"),
}
"""Registries by heading: where they are, and where their names are used."""

WORDS = (None, "TEXT", "PATH", "N")  # that stand for an argument's value, not for its name
TYPES = {
    "str": "text",
    "float": "number",
    "int": "whole number",
    "bool": "true or false",
    "Path": "path",
    "dict[str, Any]": "table",
    "dict[str, float]": "table of numbers",
    "tuple[str, ...]": "list of texts",
    "tuple[int, int]": "list of two whole numbers",
    "tuple[float, float]": "list of two numbers",
    "tuple[float, float, float]": "list of three numbers",
}


def cell(text: object) -> str:
    """Return a text as a cell of a Markdown table, which mathematics and HTML do not break."""
    plain = " ".join(str(text).split()).replace("|", "\\|").replace("``", "`")
    return plain if "`" in plain else plain.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in rows)]) + "\n"


def api() -> str:
    """Return the page of public names; mkdocstrings fills it."""
    import diptych

    version = f"`import diptych as dp`; `dp.__version__` is `{diptych.__version__}`."
    parts = [f"# Python API\n\n{version} Every name here is public; everything else may change.\n"]
    for section, names in API.items():
        parts += [f"## {section}\n", *(f"::: diptych.{name}\n" for name in names.split())]
    rows = ((f"`dp.{one}`", getattr(diptych, one).kind) for one in REGISTRIES.split())
    parts.append("## Registries\n\nThe page of [names](names.md) lists their members.\n")
    parts.append(table(("registry", "of"), rows))
    only_text = "    options: { members: false, show_root_heading: false, show_root_toc_entry: false }\n"
    parts.append("## Losses: `dp.losses` {#losses}\n\n::: diptych.objectives\n" + only_text)
    listed = {*API["Training"].split(), *REGISTRIES.split()}
    parts += [f"::: diptych.objectives.{name}\n" for name in diptych.losses.__all__ if name not in listed]
    for title in ("Measures", "Perturbations"):
        namespace = getattr(diptych, name := title.lower())
        parts.append(f"## {title}: `dp.{name}` {{#{name}}}\n\n::: diptych.{name}\n{only_text}")
        members = ((f"`dp.{name}.{one}`", getattr(namespace, one).description) for one in dir(namespace))
        parts.append(table(("name", "what it is"), members))
    return "\n".join(parts)


def commands() -> dict[str, str]:
    """Return a page for the main path, and one for each group of commands, by name."""
    from diptych.cli.tree import app

    found = {"main": ["# The main path\n"]}
    for name in app.list_commands(None):
        one = app.get_command(None, name)
        if not hasattr(one, "list_commands"):
            found["main"].append(_command(name, one))
            continue
        verbs = [_command(f"{name} {verb}", one.get_command(None, verb)) for verb in one.list_commands(None)]
        found[name] = [f"# diptych {name}\n\n{one.help}\n", *verbs]
    return {name: "\n".join(parts) for name, parts in found.items()}


def _command(name: str, command: Any) -> str:
    help, _, examples = (command.help or "").replace("\b", "").partition("Examples:")
    parts = [f"## diptych {name}\n\n{cell(help)}\n"]
    lines = [line.strip() for line in examples.strip().splitlines()]
    parts.append("```console\n" + "\n".join(lines) + "\n```\n")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    options = [one for one in options if one.name not in ("as_json", "quiet", "help")]
    if arguments:
        rows = (
            (f"`{one.name.upper() if one.metavar in WORDS else one.metavar}`", one.help or "")
            for one in arguments
        )
        parts.append(table(("argument", "what it is"), rows))
    if options:
        parts.append(table(("option", "value", "default", "what it does"), map(_option, options)))
    return "\n".join(parts)


def _option(one: Any) -> tuple[str, str, str, str]:
    annotation = one.type_descriptor.annotation
    choices = ", ".join(map(str, get_args(annotation))) if get_origin(annotation) is Literal else ""
    value = "" if one.is_flag else one.metavar or choices or "TEXT"
    shown = one.default if one.show_default or one.default == 0 else None
    shown = one.show_default if isinstance(one.show_default, str) else shown
    names = ", ".join(f"`{flag}`" for flag in (*one.opts, *one.secondary_opts))
    shown = "on" if shown is True else shown
    return names, value, "" if shown in (None, []) or shown is False else str(shown), one.help or ""


def recipe_keys() -> str:
    """Return every key of a recipe with its type, default and description, a section for each table of the TOML."""
    from diptych.training.recipe import Recipe

    parts = ["# Recipe keys\n\nA recipe is a TOML file: see [recipes](recipes.md). Unknown keys are errors."]
    parts.append("Set one with `--set KEY=VALUE` or `settings={…}`. [Losses](api.md#losses) have options.\n")
    for path, kind, model in sections(Recipe, ""):
        first = (inspect.getdoc(model) or "").partition("Attributes:")[0].strip()
        parts.append(f"## {path or 'Top level'}{kind}\n\n{cell(first)}\n")
        texts = attribute_texts(model)
        rows = []
        for key, field in model.model_fields.items():
            if not models_of(field.annotation):
                text = field.description or texts.get(key, "")
                rows.append((f"`{path and path + '.'}{key}`", _type(field.annotation), _default(field), text))
        parts.append(table(("key", "type", "default", "what it is"), rows) if rows else "")
    return "\n".join(parts)


def sections(model: Any, path: str, kind: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield a model of options and the models in it: the dotted place, which of several it is, and the model."""
    yield path, kind, model
    for key, field in model.model_fields.items():
        inner = models_of(field.annotation)
        name = f"{path and path + '.'}{key}" + (".N" if get_origin(field.annotation) is tuple else "")
        for one in inner:
            own = f", kind `{one.model_fields['kind'].default}`" if len(inner) > 1 else kind
            yield from sections(one, name, own)


def models_of(annotation: Any) -> list[Any]:
    """Return the models of options that a field's type names."""
    from diptych.core.options import Options

    if inspect.isclass(annotation) and issubclass(annotation, Options):
        return [annotation]
    return [one for inner in get_args(annotation) for one in models_of(inner)]


def attribute_texts(model: Any) -> dict[str, str]:
    """Return what the docstring's section ``Attributes``, or the comment at a field, says of each name."""
    found: dict[str, str] = {}
    for base in reversed([one for one in model.__mro__ if one.__module__.startswith("diptych.")]):
        comment = ""
        for line in inspect.getsource(base).splitlines():
            field = re.match(r" {4}(\w+): [^#]*(?:  # (.*))?$", line)
            above = re.match(r" {4}# (.*)", line)
            if field:
                found[field[1]] = field[2] or comment
            comment = f"{comment} {above[1]}" if above else ""
        _, _, lines = (inspect.getdoc(base) or "").partition("Attributes:")
        for entry in re.split(r"\n {4}(?=\w)", lines):
            names, _, text = entry.partition(":")
            found |= {name.strip(): text for name in names.split(",") if text}
    return found


def _type(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_type(one) for one in get_args(annotation) if one is not type(None))
    if get_args(annotation) and not inspect.isclass(get_origin(annotation)):  # Literal, Annotated
        return ", ".join(f"`{one}`" for one in get_args(annotation) if isinstance(one, str | int))
    is_plain = inspect.isclass(annotation) and not get_args(annotation)
    words = re.sub(r"\b(\w+\.)+", "", annotation.__name__ if is_plain else str(annotation))
    return TYPES.get(words, words)


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value == {} else f"`{json.dumps(value, ensure_ascii=False, default=str)}`"


def registries() -> str:
    """Return the names of every registry: what each is, and where it comes from."""
    parts = ["# Names\n\nEvery name that you can choose. `diptych info TOPIC` prints them, too.\n"]
    for title, (place, use) in NAMES.items():
        module, _, name = place.partition(":")
        members = list(getattr(importlib.import_module(module), name))
        parts.append(f"## {title}\n\nUsed for {use}.\n")
        rows = [(f"`{one.name}`", one.description, _source(one)) for one in members]
        width = 3 if any(row[2] for row in rows) else 2
        parts.append(table(("name", "what it is", "source")[:width], (row[:width] for row in rows)))
    return "\n".join(parts)


def _source(one: Any) -> str:
    paper = getattr(one, "paper", None)
    where = f"{paper.authors}, {paper.venue}" if paper is not None and not getattr(one, "ours", False) else ""
    return str(getattr(one, "citation", "") or getattr(one, "source", "") or where)


@cache
def pages() -> dict[str, str]:
    """Return the Markdown of every generated page by its path below ``docs``."""
    return {
        "reference/api.md": api(),
        **{f"reference/commands/{name}.md": text for name, text in commands().items()},
        "reference/recipe-keys.md": recipe_keys(),
        "reference/names.md": registries(),
    }


def add_pages(files: Any, config: Any, texts: Mapping[str, str]) -> Any:
    from mkdocs.structure.files import File

    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_files(files: Any, config: Any) -> Any:
    return add_pages(files, config, pages())


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let commands without a prompt be coloured as a shell's."""
    return re.sub(r"^```console\n(?!\$ )", "```bash\n", markdown, flags=re.MULTILINE)


def on_page_content(html: str, **_: Any) -> str:
    """Turn the roles of docstrings into what they name."""
    return re.sub(r":(?:func|class|meth|mod|attr|data):(<code>)~?", r"\1", html)
