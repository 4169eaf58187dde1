"""Show notebooks as pages: they are stored without outputs, and run when the site is built.

What has run is kept in ``build/notebooks`` until the notebook or the version changes. ``DOCS_NOTEBOOKS=off`` shows them
without outputs.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
KEPT = DOCS.parent / "build" / "notebooks"
SECONDS = 600
FOUND: dict[str, str] = {}
"""HTML of outputs by its placeholder, which Markdown leaves alone."""


def run(path: Path) -> Any:
    """Return a notebook with its outputs; it runs in an empty folder, unless it has run before."""
    import nbformat
    from nbclient import NotebookClient

    from diptych import __version__

    notebook = nbformat.read(path, as_version=4)
    if os.environ.get("DOCS_NOTEBOOKS") == "off":
        return notebook
    kept = (
        KEPT
        / f"{path.stem}-{hashlib.sha256(path.read_bytes() + __version__.encode()).hexdigest()[:12]}.ipynb"
    )
    if kept.is_file():
        return nbformat.read(kept, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        metadata = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=metadata).execute()
    KEPT.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook


def markdown_of(notebook: Any, name: str) -> str:
    """Return a notebook as Markdown, with a link to the notebook itself below its title."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        printed = "".join(
            one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout"
        )
        parts += [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
        parts += [shown for output in cell.outputs if (shown := output_of(output))]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n[Download this notebook]({name}.ipynb){{ download }}\n{rest}\n"


def output_of(output: Any) -> str:
    """Return one result of a cell; progress bars and streams are not shown."""
    data = output.get("data", {})
    if "text/html" in data:
        html = data["text/html"]
        return "" if "<progress" in html or not html.strip() else _placeholder(html)
    if "image/png" in data:
        return _placeholder(f'<img alt="output" src="data:image/png;base64,{data["image/png"].strip()}">')
    return f"```text\n{data['text/plain']}\n```" if "text/plain" in data else ""


def _placeholder(html: str) -> str:
    key = f"notebook-output-{len(FOUND)}"
    FOUND[key] = f'<div class="notebook-output">{html}</div>'
    return f'<div id="{key}"></div>'


@cache
def names() -> list[str]:
    return sorted(path.stem for path in (DOCS / "tutorials").glob("*.ipynb"))


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name in names():
        text = markdown_of(run(DOCS / "tutorials" / f"{name}.ipynb"), name)
        files.append(File.generated(config, f"tutorials/{name}.md", content=text))
    return files


def on_page_content(html: str, **_: Any) -> str:
    return re.sub(r'<div id="(notebook-output-\d+)"></div>', lambda found: FOUND[found[1]], html)
