"""What ``pip install diptych`` brings: what works without the extras, what the pip lines say, what the wheel holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import base_alone
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from diptych.core.extras import LIBRARIES

ROOT = Path(__file__).parents[1]


def test_verbs_on_embeddings_work_without_the_extras(tmp_path: Path) -> None:
    line = [sys.executable, base_alone.__file__, str(tmp_path)]
    ended = subprocess.run(line, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    done = json.loads(ended.stdout)
    wrong = {one: done["commands"][one] for one in base_alone.COMMANDS if done["commands"][one][0]}
    assert not wrong
    for command, extra in base_alone.REFUSED:
        code, error = done["commands"][command]
        assert code == 2, (command, error)
        assert f"pip install 'diptych[{extra}]'" in error
        assert "Traceback" not in error
    assert done["python"]["error"] < 1e-5
    assert done["python"]["rsum"] == 600
    assert done["python"]["queries"] == done["python"]["judged"] == 40


def distributions(extras: dict[str, list[str]], extra: str) -> set[str]:
    """The distributions that an extra installs by itself and by those it is made of."""
    found = set()
    for requirement in map(Requirement, extras[extra]):
        if requirement.name == "diptych":
            found |= {name for part in requirement.extras for name in distributions(extras, part)}
        else:
            found.add(canonicalize_name(requirement.name))
    return found


def test_every_pip_line_installs_the_library_that_is_missing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    base = {canonicalize_name(Requirement(one).name) for one in project["dependencies"]}
    named = {(library, extra) for library, (_, extra) in LIBRARIES.items()}
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r'require\("(\w+)[\w.]*", "([\w-]+)"', path.read_text(encoding="utf-8")))
    indirect = {"threadpoolctl": "scikit-learn", "Stemmer": "PyStemmer", "scipy": "scipy"}
    for library, extra in named:
        distribution = canonicalize_name(indirect.get(library) or LIBRARIES[library][0])
        assert distribution in base | distributions(extras, extra), (library, extra)
    heavy = {"torch", "torchvision", "timm", "transformers", "lightning-fabric"}
    assert not heavy & (base | distributions(extras, "commerce") | distributions(extras, "engines"))
    everything = {
        name
        for extra in extras
        if extra not in ("test", "dev", "docs")
        for name in distributions(extras, extra)
    }
    assert everything == distributions(extras, "all")
