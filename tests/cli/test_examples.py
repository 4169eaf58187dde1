"""Every command that the README prints, and every example that a help ends in.

All of them are parsed in each run of the tests. Slow: ``make examples`` runs them, in a folder in which all that they
name exists; ``EXAMPLES=FOLDER`` keeps it, and begins where an earlier call ended.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from functools import cache, wraps
from pathlib import Path

import pytest
from example_world import BEFORE, FIRST, REPOSITORY, World, addresses, example_world, leave_more
from picture_host import picture_host
from qdrant_server import qdrant_server

from diptych.cli import verbs
from diptych.cli.tree import app
from diptych.core.errors import DiptychError

_SIZE = "real data and hours: small stand-ins would be trained for as many rows, seeds and epochs"
CANNOT = {
    "diptych demo": "make demo runs it",
    "diptych study run svl.figure-4.5 --quick": "8 minutes of a quiet machine",
    "diptych study run metric-learning.table-1 --data flickr30k --out studies/flickr30k": _SIZE,
    "diptych study run metric-learning.table-1 --data flickr8k --seeds 0,1,2": _SIZE,
    "diptych study run ltd.table-1 --data flickr30k --targets all-MiniLM-L6-v2": _SIZE,
}
"""Commands that are parsed alone."""

INSTEAD = {
    "tail -f": "cat",  # which ends
    "--part 3/8": "--part 1/1",  # of a large dataset
    "--contact ME": "--contact ME --allow-private",  # the host is on this machine
    "--data coco=coco -o": "--data coco=coco --set clip=runs/flickr8k --rows clip -o",  # the hub's CLIP
}
"""What stands in a command for what only its reader has."""

ENDLESS = re.compile(r"diptych (serve|watch(?!.*--once))\b")
"""Commands that run until Ctrl-C: parsed alone, tests of their own run them."""

KEEPS = re.compile("--retry-failed")
"""Commands that go on in the folder which they name."""


def commands_of(group, before=()):
    """Yield every verb with its command."""
    for name in group.list_commands(None):
        one = group.get_command(None, name)
        if isinstance(one, verbs.Verbs):
            yield from commands_of(one, (*before, name))
        else:
            yield " ".join((*before, name)), one


@cache
def examples():
    """Return verb and line of every example of a help, by its name."""
    found = {}
    for verb, one in commands_of(app):
        lines = (one.help or "").partition("Examples:")[2].split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        found |= {f"{verb.replace(' ', '-')}-{row}": (verb, line) for row, line in enumerate(lines, 1)}
    return found


@cache
def readme():
    """Return every command line of the README and of the tour, by its name."""
    names = ("docs/tour.md", "README.md")
    text = "\n".join((REPOSITORY / name).read_text(encoding="utf-8") for name in names)
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    found = [line for line in lines if re.match(r"(\.venv/bin/)?diptych ", line)]
    return {f"readme-{row:02}": line for row, line in enumerate(found, 1)}


ALL = {**readme(), **{name: line for name, (_, line) in examples().items()}}


def called_with(line):
    """Return verb and arguments of a command that is read as ever, and does nothing."""
    called = []
    whole = verbs.command_of

    def without_work(function, name):
        @wraps(function)
        def taken(**values):
            called.append((name, values))

        return whole(taken, name)

    words = shlex.split(line.replace(".venv/bin/", ""), comments=True)
    words = words[words.index("diptych") :]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        patch.setattr(verbs, "command_of", without_work)
        patch.setattr("sys.argv", words)
        assert verbs.run(app) == 0
    assert called or "--help" in words
    return called


def check_names(verb, values):
    """See that recipes, studies and what stands in registries exist."""
    import importlib

    from diptych.analysis.perturbations import choose_perturbations
    from diptych.core.options import Options
    from diptych.metrics.measuring import resolve
    from diptych.studies import STUDIES
    from diptych.training.recipe import load_recipe

    whole = {
        "measure": resolve,
        "measures": lambda names: resolve(",".join(names).split(",")),
        "perturb": choose_perturbations,
    }
    for options in (one for one in values.values() if isinstance(one, Options)):
        given = {key: getattr(options, key) for key in type(options).model_fields}
        for key, field in type(options).model_fields.items():
            extra = field.json_schema_extra or {}
            names = given[key] if isinstance(given[key], list | tuple) else [given[key]]
            names = [name for name in names if name is not None]
            if key in whole and names:
                whole[key](names)
            elif "names" in extra:
                module, _, registry = extra["names"].partition(":")
                known = getattr(importlib.import_module(module), registry)
                for name in names:
                    assert known.get(name) is not None
        if verb == "train" and given.get("recipe"):
            from diptych.cli.sources import recipe_values

            load_recipe(str(given["recipe"]), recipe_values(given["set_"]))
    if verb in ("show", "run") and values.get("name", "coco") not in ("coco", None):  # None: run --all
        STUDIES.get(values["name"])


def fault_of(line):
    """Return what is wrong with a command as the command line reads it: options, values, names of registries."""
    try:
        for verb, values in called_with(line):
            check_names(verb, values)
    except DiptychError as error:
        return f"{line}: {error.message}"
    return ""


def test_every_command_is_understood():
    assert len(readme()) > 40
    assert len(examples()) > 100
    assert set(CANNOT) <= set(ALL.values())
    assert not [fault for line in ALL.values() if (fault := fault_of(line))]


def test_a_command_that_is_wrong_is_not_understood():
    for line in (
        *(
            "evaluate runs/one --measur R@1",
            "evaluate runs/one --measure R@one",
            "index runs/one --engine hnswww",
        ),
        *("compare runs/one runs/two --measures R@1,rsun", "train scenes --set objective.nam=infonce"),
        *("study run metric-learning.table-9", "intent describe log --statistic chanels", "no-verb"),
    ):
        assert fault_of(f"diptych {line}"), line


class Places:
    """The folder of the README's commands, in which they leave what they make; and a copy of it for each verb.

    Attributes:
        failed: how commands of the README ended that did not succeed, by their names; and by verb, those before its
            examples.
    """

    def __init__(self, folder, host, instead):
        self.folder, self.host, self.instead = folder, host, instead
        self.failed: dict[str, str] = {}
        self.done: dict[str, list[str]] = {}
        self.world = World(folder / "readme")
        if (folder / "done.json").is_file():
            self.done = json.loads((folder / "done.json").read_text(encoding="utf-8"))
        else:
            shutil.rmtree(self.world.folder, ignore_errors=True)
            example_world(self.world.folder).prepare(*FIRST)
            self._keep()

    def _keep(self):
        (self.folder / "done.json").write_text(json.dumps(self.done), encoding="utf-8")

    def run(self, world, line):
        """Run a command, unless an earlier call of these tests has."""
        done = self.done.setdefault(world.folder.name, [])
        if line in done:
            return
        typed = line
        for theirs, ours in self.instead.items():
            typed = typed.replace(theirs, ours)
        ended = world.run(typed)
        allowed = (0, 1) if "diptych data check " in line else (0,)  # 1: something has to be put right
        said = f"{typed}\n{ended.stdout}\n{ended.stderr}"
        assert ended.returncode in allowed, f"exit code {ended.returncode}: {said}"
        assert "Traceback" not in ended.stderr, said
        done.append(line)
        self._keep()

    def readme(self, upto=None):
        """Run the README's commands in their order, up to one of them."""
        for name, line in readme().items():
            if line not in CANNOT and name not in self.failed:
                try:
                    self.run(self.world, line)
                except AssertionError as error:
                    self.failed[name] = str(error)
            if name == upto:
                return

    def of_verb(self, verb):
        """Return the copy in which a verb's examples run, after the README's commands."""
        self.readme()
        folder = self.folder / verb.replace(" ", "-")
        assert verb not in self.failed, self.failed[verb]
        if folder.name not in self.done:
            shutil.rmtree(folder, ignore_errors=True)
            copied = self.world.copy(folder)
            try:
                copied.prepare(*BEFORE.get(verb, ()))
            except AssertionError as error:
                self.failed[verb] = str(error)
                raise
            leave_more(folder)
            self.done[folder.name] = []
            self._keep()
        addresses(folder, self.host)
        return World(folder)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = Path(os.environ.get("EXAMPLES") or tmp_path_factory.mktemp("examples")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with picture_host() as host, qdrant_server() as server:
        yield Places(folder, host.address, {**INSTEAD, "https://host:6333": server.url})


def _run(names):
    return [name for name in names if ALL[name] not in CANNOT and not ENDLESS.search(ALL[name])]


@pytest.mark.slow
@pytest.mark.timeout(3600)  # the first one makes the folder
@pytest.mark.parametrize("name", _run(readme()))
def test_readme(name, places):
    """The README's commands succeed one after the other."""
    places.readme(name)
    assert name not in places.failed, places.failed[name]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", _run(examples()))
def test_example_of_a_help(name, places):
    """A help's examples succeed one after the other; what one of them writes anew is not there before."""
    verb, line = examples()[name]
    world = places.of_verb(verb)
    if line not in places.done[world.folder.name]:
        for place in re.findall(r" (?:--out|-o) (\S+)", line):
            target = world.folder / place
            if target.is_file():
                target.unlink()
            elif not KEEPS.search(line):
                shutil.rmtree(target, ignore_errors=True)
    places.run(world, line)
