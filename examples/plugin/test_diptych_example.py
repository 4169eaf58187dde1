"""The example, installed as a plug-in beside a broken one, and used by name from the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from commands import RECIPE

import diptych as dp
from diptych.data.scenes import make_scenes

_RUN = """
import shlex, sys
from diptych import cli
for line in sys.stdin.read().splitlines():
    sys.argv = ["diptych", *shlex.split(line)]
    try:
        cli.main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def install(site: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """Write what an installer writes of a distribution and its entry points."""
    folder = site / f"{name}-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    sections = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())])
        for group, entries in groups.items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(sections))


def test_every_kind_of_plug_in_is_used_by_name(tmp_path: Path) -> None:
    site, here = tmp_path / "site", Path(__file__).parent
    project = tomllib.loads((here / "pyproject.toml").read_text())["project"]
    install(site, project["name"], project["entry-points"])
    install(site, "broken", {"diptych.losses": {"mine": "no_such_module"}})
    shutil.copy(here / "diptych_example.py", site)

    scenes = make_scenes(tmp_path / "scenes", 32, 8, 8, size=32, workers=1)
    collection = dp.read(scenes)
    lines = [
        f"{collection.image_ids[image]}|{collection.splits[image]}|{caption}"
        for image, caption in zip(collection.caption_image, collection.captions, strict=True)
    ]
    (scenes / "captions.pipes").write_text("\n".join(lines))
    (scenes / "dataset.json").unlink()
    (tmp_path / "tiny.toml").write_text(RECIPE.format(path=scenes))
    commands = (
        "train tiny.toml --set objective.name=soft-hinge --set stages.0.epochs=1 --out run",
        "evaluate run --measure MRLR",
        "data perturb scenes --perturb capitals --out louder --split test",
    )
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "DIPTYCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input="\n".join(commands),
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "MRLR" in done.stdout
    (warning,) = [line for line in done.stderr.splitlines() if "broken" in line]
    assert warning == (
        "the plug-in of broken is left out (diptych.losses: mine = no_such_module): "
        "ModuleNotFoundError: No module named 'no_such_module'"
    )
    (changed,) = (tmp_path / "louder").glob("*.jsonl")
    assert all(json.loads(line)["perturbed"].isupper() for line in changed.read_text().splitlines())
