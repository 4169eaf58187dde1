"""The documentation: links, commands and names are real; slow (``make docs-test``): what it shows runs."""

from __future__ import annotations

import ast
import importlib.util
import json
import posixpath
import re
import shlex
import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest
from commands import command

import diptych
from diptych.cli import verbs
from diptych.cli.tree import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
import generate  # noqa: E402
import results_pages  # noqa: E402

WRITTEN = {
    path.relative_to(DOCS).as_posix(): path.read_text("utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if path.name != "introduction.md"  # a part of results/index.md
}
NOTEBOOKS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DOCS.rglob("*.ipynb"))}


@cache
def pages() -> dict[str, str]:
    """Return every page of the site by its path below ``docs``, and the README."""
    shown = {f"tutorials/{name}.md": "\n\n".join(markdown_of(one)) for name, one in NOTEBOOKS.items()}
    readme = {"../README.md": (ROOT / "README.md").read_text("utf-8")}
    return {**WRITTEN, **shown, **generate.pages(), **results_pages.pages(), **readme}


def markdown_of(notebook: dict[str, Any]) -> Iterator[str]:
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield language, code and the comment above of every fenced block, those in tabs too."""
    fence = r"(?:<!-- (?P<note>[^>]*) -->\s*\n)?^(?P<in>[ ]*)```(?P<language>\w+)\n(?P<code>.*?)^(?P=in)```$"
    for found in re.finditer(fence, text, re.DOTALL | re.MULTILINE):
        yield found["language"], textwrap.dedent(found["code"]), found["note"] or ""


def without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^\1```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return what a link to a page can end in: names given to headings, and those that Markdown makes of them."""
    found = set(re.findall(r"\{#([\w-]+)\}", text))
    for heading in re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.M
    ):
        plain = (
            unicodedata.normalize("NFKD", re.sub(r"\]\([^)]*\)", "", heading))
            .encode("ascii", "ignore")
            .decode()
        )
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return found


def test_every_link_leads_somewhere() -> None:
    wrong = []
    for page, text in pages().items():
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            place = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            place = place.removeprefix("docs/") if page.startswith("..") else place
            place = posixpath.normpath(posixpath.join("..", path)) if page.startswith("..") else place
            place = posixpath.relpath(posixpath.join("/docs", place), "/docs")
            if place not in pages() and not (DOCS / place).exists():
                wrong.append(f"{page}: {target}")
            elif anchor and anchor not in anchors(pages().get(place, "")):
                wrong.append(f"{page}: no heading {target}")
    assert not wrong


def test_the_menu_has_every_page() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    listed = re.findall(r"- (?:[^:\n]+: )?(\S+\.md)", menu)
    assert sorted(listed) == sorted(name for name in pages() if not name.startswith(".."))


def test_the_reference_has_every_public_name() -> None:
    listed = [*" ".join(generate.API.values()).split(), *generate.REGISTRIES.split()]
    namespaces = ["losses", "measures", "perturbations", "__version__"]
    assert sorted([*listed, *namespaces]) == sorted(diptych.__all__)
    page = generate.pages()["reference/api.md"]
    losses = set(diptych.losses.__all__) - set(listed)
    assert all(f"::: diptych.objectives.{name}\n" in page for name in losses)
    keys = generate.pages()["reference/recipe-keys.md"]
    assert "| `stages.N.learning_rate` | number | required | at the top of the schedule. |" in keys
    assert "`--measure`" in generate.pages()["reference/commands/main.md"]


@cache
def defined(module: str) -> set[str]:
    """Return the names that a module defines or imports, without importing it."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None
    names = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
        names |= {one.asname or one.name for one in getattr(node, "names", ()) if isinstance(one, ast.alias)}
        names |= {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
        names |= {node.id} if isinstance(node, ast.Name) else set()
    return names


def faults_of_python(code: str) -> Iterator[str]:
    """Yield the names that a block takes from the package and that are not there, or not public."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("diptych"):
            yield from (one.name for one in node.names if one.name not in defined(str(node.module)))
        if isinstance(node, ast.Attribute):
            owner, _, namespace = ast.unparse(node.value).partition(".")
            is_ours = owner in ("dp", "diptych") and namespace in ("", "losses", "measures", "perturbations")
            known = (dir(getattr(diptych, namespace)) if namespace else diptych.__all__) if is_ours else ()
            if is_ours and node.attr not in known:
                yield ast.unparse(node)


def commands_of(code: str) -> Iterator[str]:
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if "diptych" in words[:3] and "…" not in line:
            yield shlex.join(words[words.index("diptych") + 1 :])


def fault_of_command(line: str) -> str:
    """Return why a command is not understood; it is parsed as ever, and does nothing."""
    whole = verbs.command_of

    def without_work(function: Any, name: str) -> Any:
        return whole(wraps(function)(lambda **values: None), name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verbs, "command_of", without_work)
        patch.setattr("sys.argv", ["diptych", *shlex.split(line)])
        try:
            return "" if verbs.run(app) == 0 else line
        except diptych.DiptychError as error:
            return f"{line}: {error}"


def test_code_names_what_there_is() -> None:
    wrong, count = [], 0
    for page, text in pages().items():
        if page.startswith("reference/commands/"):
            continue  # the examples of helps, which have a test of their own
        for language, code, _ in blocks(text):
            if language == "python":
                wrong += [f"{page}: {fault}" for fault in faults_of_python(code)]
            if language == "console":
                wrong += [
                    f"{page}: {fault}" for line in commands_of(code) if (fault := fault_of_command(line))
                ]
            count += language in ("python", "console")
    assert not wrong
    assert count > 100
    assert list(faults_of_python("dp.evaluat(1)\ndp.losses.InfoNC()")) == ["dp.evaluat", "dp.losses.InfoNC"]
    assert fault_of_command("evaluate runs/x --measur R@1")


def run_blocks(text: str) -> int:
    """Run a page's Python in one namespace, and the commands that are marked, in their order."""
    names: dict[str, Any] = {"__name__": "docs"}
    ran = 0
    for language, code, note in blocks(text):
        if language == "python" and not note.startswith("not run"):
            exec(compile(code, "docs", "exec"), names)
            ran += 1
        if language == "console" and note.startswith("runs"):
            for line in commands_of(code):
                command(line)
            ran += 1
    return ran


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [name for name, text in WRITTEN.items() if "```python" in text or "<!-- runs" in text]
)
def test_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_blocks(WRITTEN[page]) or "<!-- not run" in WRITTEN[page]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in NOTEBOOKS[name]["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "store notebooks without outputs"
            exec(compile("".join(cell["source"]), name, "exec"), names)
