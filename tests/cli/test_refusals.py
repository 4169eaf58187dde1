"""What cannot be done is one line with its fix and exit code 2 (1 where noted), and nothing is written."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CASES = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")


GROUPS = {}
for _line in CASES.strip().splitlines():
    _first, _second, *_ = _line.split()
    GROUPS.setdefault(_first if _second[0] in "{-" else f"{_first} {_second}", []).append(_line)

FIXTURES = {
    **{"scenes": "scenes_folder", "run": "run_folder", "recipe": "recipe_file", "head": "head_folder"},
    **{"shop": "tiny_shop", "log": "shop_log", "category_run": "trained"},
}
FILES = {
    "captions": "cat\n",
    "taxonomy": "# Google_Product_Taxonomy_Version: 2021-09-21\n1 - Men\n2 - Men > Shoes\n",
    "table": "when,who\n1,2\n",
    "blank": "\n \n",
}
ARRAYS = {"itc": np.ones((2, 10)), "list": np.arange(10)}


class Places(dict[str, Any]):
    """What a line names: files of the test's own folder, and what the session has, made when it is first named."""

    def __init__(self, request, folder):
        super().__init__(out=folder / "out", here=folder / "here")
        self.request, self.folder = request, folder
        self["here"].mkdir(parents=True)
        (self["here"] / "precious.txt").write_text("years of work")

    def __missing__(self, name):
        if name in FILES:
            file = self.folder / f"{name}.{'csv' if name == 'table' else 'txt'}"
            file.write_text(FILES[name])
            return file
        if name in ARRAYS:
            np.save(self.folder / f"{name}.npy", ARRAYS[name])
            return self.folder / f"{name}.npy"
        if name == "rows":
            for kind in ("images", "texts"):
                np.save(self.folder / f"{kind}.npy", np.ones((1, 2), np.float32))
                (self.folder / f"{kind}.txt").write_text("a\n")
            return self.folder
        if name == "x_vlm":
            return "'reproducibility:table-2.1:Repr. X-VLM, Flickr30k'"
        found = self.request.getfixturevalue(FIXTURES.get(name, name))
        return found[1] if isinstance(found, tuple) else getattr(found, "folder", found)


@pytest.mark.parametrize("verb", GROUPS)
def test_refused(verb, diptych, request, tmp_path, monkeypatch):
    for name in ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID", "DIPTYCH_CONTACT"):
        monkeypatch.delenv(name, raising=False)
    for number, case in enumerate(GROUPS[verb]):
        line, _, words = case.partition(" =1> " if " =1> " in case else " => ")
        places = Places(request, tmp_path / str(number))
        monkeypatch.chdir(tmp_path / str(number))
        line = string.Formatter().vformat(line, (), places)
        parts = tuple(words.split(" & "))
        diptych(line, **({"failed": parts} if " =1> " in case else {"refused": parts}))
        assert not places["out"].exists()
        assert [path.name for path in places["here"].iterdir()] == ["precious.txt"]
