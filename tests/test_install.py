"""What ``pip install diptych`` brings: what works without the extras, what the pip lines say, what the wheel holds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import base_alone
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from diptych.core.extras import EXTRA_OF

ROOT = Path(__file__).parents[1]


def test_verbs_on_embeddings_work_without_the_extras(tmp_path: Path) -> None:
    line = [sys.executable, base_alone.__file__, str(tmp_path)]
    ended = subprocess.run(line, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    check_verbs(json.loads(ended.stdout))


def check_verbs(done: dict[str, Any]) -> None:
    """See that verbs on embeddings ended well, and that others name their pip line."""
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


DISTRIBUTIONS = {
    "Stemmer": "PyStemmer",
    "ibis": "ibis-framework",
    "open_clip": "open_clip_torch",
    "seismic": "pyseismic-lsr",
    "sklearn": "scikit-learn",
    "threadpoolctl": "scikit-learn",
}
"""Libraries whose distribution has another name, or that come with another one."""


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
    named = set(EXTRA_OF.items())
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r'require\("(\w+)[\w.]*", "([\w-]+)"', text))
        assert set(re.findall(r'require\("(\w+)[\w.]*", purpose=', text)) <= EXTRA_OF.keys(), path
    for library, extra in named:
        distribution = canonicalize_name(DISTRIBUTIONS.get(library, library))
        assert distribution in base | distributions(extras, extra), (library, extra)
    heavy = {"torch", "torchvision", "timm", "transformers", "lightning-fabric"}
    assert not heavy & (base | distributions(extras, "commerce") | distributions(extras, "engines"))
    everything = {
        name
        for extra in extras
        if extra not in ("test", "dev", "docs", "ray")  # Ray is 250 MB of what one machine does not need
        for name in distributions(extras, extra)
    }
    assert everything == distributions(extras, "all")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist of a copy of what lies here."""
    copy, out = tmp_path_factory.mktemp("copy") / "diptych", tmp_path_factory.mktemp("dist")
    left_out = shutil.ignore_patterns(
        "__pycache__", "*.egg-info", ".*", "build", "dist", "golden", "stored", "runs", "demo", "scratch"
    )
    shutil.copytree(ROOT, copy, ignore=left_out)
    code = (
        f"from setuptools import build_meta as to; to.build_sdist({str(out)!r}); to.build_wheel({str(out)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_holds_the_package_and_the_sdist_everything(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        packed = {name for name in wheel.namelist() if not name.startswith("diptych-")}
    source = ROOT / "src"
    there = {path.relative_to(source).as_posix() for path in source.glob("diptych/**/*") if path.is_file()}
    assert packed == {name for name in there if "__pycache__" not in name}
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tour.md")]
    recipes = set(re.findall(r"diptych train (?:recipes/)?([a-z][a-z0-9-]*)", "".join(texts)))
    assert len(recipes) >= 3
    assert {f"diptych/training/recipes/{name}.toml" for name in recipes} <= packed
    with tarfile.open(built[1]) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    files = [path for pattern in ("*.md", "docs/**/*.*", "tests/*.py") for path in ROOT.glob(pattern)]
    names = {path.relative_to(ROOT).as_posix() for path in files}
    assert {name for name in names if "__pycache__" not in name and "/." not in name} <= held
    assert {"LICENSE", "Makefile", "constraints.txt", "pyproject.toml"} <= held


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, str(built[0])], check=True, env=own)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    installed = {path.name for path in site.iterdir()}
    assert not installed & {"torch", "torchvision", "timm", "transformers", "lightning_fabric", "matplotlib"}
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 450e6
    work = tmp_path / "work"
    work.mkdir()
    line = [str(python), base_alone.__file__, str(work)]
    ended = subprocess.run(line, capture_output=True, text=True, env=own)
    assert ended.returncode == 0, ended.stderr
    check_verbs(json.loads(ended.stdout))
