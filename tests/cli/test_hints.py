"""Every next step that a verb prints is run on the state that printed it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CHAINS = {
    "main": """
data scenes --train 80 --val 16 --test 16 --size 32 --out scenes
train tiny.toml --out run
train --resume run
evaluate run
embed run --out emb
evaluate emb --out evaluated
evaluate run --data scenes --split val --out val
index emb
index emb --of texts --out texts
search emb/index-images-exact star
search texts picture.png
report run
train tiny.toml --set seed=1 --out other
evaluate other
compare run other
compare run other --out comparison
adapt run --data scenes --pairs 8 --out adapted
info
info measures
info run
""",
    "data": """
data list
data show coco
data check own scenes
data products --n 60 --levels 2 --size 32 --out shop
data shop-log --visitors 300 --out visits
data shortcuts scenes --size 56 --digit-size 8
data perturb --list
data perturb captions.txt --perturb character-swap
data perturb captions.txt --perturb character-swap --out swapped
""",
    "analyse": """
analyse stress run --perturb character-swap --seeds 1 --samples 20 --out stressed
analyse audit run --probe linear --samples 20 --out audited
analyse cocos run
analyse granularity scenes
analyse granularity scenes --out fine
analyse protocol --target 'i2t R@1=5'
analyse protocol run --target 'i2t R@1=12.5' --out explained
""",
    "sparse": """
sparse train run --out head {quick}
sparse terms head
sparse terms head star
sparse explain head star
index head
search head/index-images-inverted star
evaluate head
""",
    "study": """
study list
study show metric-learning.table-1
study run intent.table-6.7 --out measured
study verdict measured
""",
    "categories": """
categories train shop --out categories --text-encoder lsa:16 {small}
categories evaluate shop --out evaluation --model bm25 --samples 20
categories pick categories --out picked
categories pick categories --out sheets --sheet
categories fill categories --out filled.jsonl
categories fill categories --check
categories index categories
categories tree shop
""",
    "intent": """
data shop-log --visitors 5000 --out visits
intent ingest visits --out log
intent describe log --out description
intent features log --out features
intent evaluate features --out judged --model logistic-regression --samples 20 --step 0
intent audit features
intent train features --out scorer --model logistic-regression --samples 0 --step 0
intent score scorer scorer/example.json
intent score scorer features --out scores
intent drift features features --scorer scorer --out drift
intent report description
""",
}
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
