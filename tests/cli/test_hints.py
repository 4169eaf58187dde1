"""Every next step that a verb prints is run on the state that printed it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_TEXT = Path(__file__).with_name("next_steps.txt").read_text(encoding="utf-8")
CHAINS = dict(one.split("]\n", 1) for one in _TEXT.removeprefix("[").split("\n\n["))
_SMALL = "--set epochs=2 --set hidden=16 --set width=8 --set batch_size=16"
_VIEWERS = ("open", "xdg-open", "start", "less", "cat", "head")


@pytest.mark.parametrize("name", CHAINS)
def test_next_steps(name, request, diptych, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(request.getfixturevalue("scenes_folder"), "scenes")
    if name == "categories":
        shutil.copytree(request.getfixturevalue("trained")[0], "shop")
    if name in ("analyse", "sparse"):
        shutil.copytree(request.getfixturevalue("run_folder"), "run")
    recipe = Path(request.getfixturevalue("recipe_file")).read_text()
    Path("tiny.toml").write_text(re.sub('path = ".*"', 'path = "scenes"', recipe))
    Path("captions.txt").write_text("a red star\na small blue box\n")
    shutil.copy(next(Path("scenes").rglob("*.png")), "picture.png")
    if name == "main":
        shutil.rmtree("scenes")
    quick = "--set training.epochs=2 --set head.width=16 --set training.batch_size=32"
    wrong = []
    for line in CHAINS[name].format(quick=quick, small=_SMALL).strip().splitlines():
        done = diptych(f"{line} --json", code="any")
        if done.code:
            wrong.append((line, done.err))
            continue
        for command in json.loads(done.out)["next"]:
            if problem := follow(command, diptych):
                wrong.append((line, command, problem))
    assert not wrong, "\n".join(map(str, wrong))


def follow(command, diptych):
    """Run a next step as a shell would, and return what is wrong with it; what opens a page needs the page."""
    words = shlex.split(command, comments=True)
    if words[0] in _VIEWERS:
        missing = [word for word in words[1:] if not word.startswith("-") and not Path(word).is_file()]
        return f"{', '.join(missing)} missing" if missing else ""
    if words[0] != "diptych" or re.search(r"\b[A-Z]{3,}\b", command):
        return "cannot be pasted"
    done = diptych(shlex.join(words[1:]), code="any")
    return done.err if done.code else ""
