"""Every page in a browser: no horizontal scrolling, nothing in its console, no serious barrier (axe-core).

Slow: ``make pages`` runs it; ``PAGES=FOLDER`` keeps the pages and their pictures.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

AXE = Path(os.environ.get("AXE", "build/npm/node_modules/axe-core/axe.min.js"))
WIDTHS = (360, 1280, 1920)
_BARRIERS = """axe.run().then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => one.id + ': ' + one.nodes[0].html.slice(0, 200)))"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed"),
]


@pytest.fixture
def pages(diptych, run_folder, head_folder, stressed, trained, shop_log, features, scenes_folder, tmp_path):
    """A page of every kind, made by its command."""
    (shop, run), out = trained, tmp_path
    log = ["--target", "i2t R@1=10.0", "--target", "t2i R@1=10.0"]
    diptych(f"report {run_folder} --out {out}/run.html")
    diptych(f"report {stressed}/letters --out {out}/stress.html")
    diptych(
        f"compare {stressed}/letters {stressed}/words --samples 20 --flips 99 --out {out}/comparison.json"
    )
    diptych(f"analyse granularity coarse={scenes_folder} finer={scenes_folder} --out {out}/granularity")
    diptych(f"analyse cocos {run_folder} --batch-size 16 --out {out}/cocos")
    diptych(f"analyse audit {run_folder} --probe linear --samples 20 --out {out}/audit")
    diptych(f"embed {run_folder} --out {out}/embedded")
    diptych(f"analyse protocol {out}/embedded --out {out}/protocol", *log)
    diptych(f"intent describe {shop_log} --out {out}/description")
    diptych(f"intent evaluate {features.folder} --model logistic-regression --samples 20 --out {out}/intent")
    diptych(f"intent train {features.folder} --model logistic-regression --samples 0 --out {out}/scorer")
    diptych(f"intent report {out}/scorer --out {out}/scorer.html")
    diptych(f"evaluate {out}/embedded --samples 20 --out {out}/evaluated")
    diptych(f"evaluate {run_folder} --split val --samples 20 --out {out}/other")
    diptych(f"categories evaluate {shop} --run {run} --samples 20 --out {out}/categories")
    diptych(f"categories pick {run} --out {out}/picks")
    diptych(f"study run intent.table-6.7 --out {out}/study")
    found = {path.relative_to(out).as_posix(): path for path in out.rglob("*.html")}
    found["sparse/report.html"] = head_folder / "report.html"
    return {name: path for name, path in sorted(found.items()) if path.is_file()}


def test_every_page(pages, tmp_path):
    kept = Path(os.environ["PAGES"]) if "PAGES" in os.environ else tmp_path / "seen"
    kept.mkdir(parents=True, exist_ok=True)
    wrong = []
    assert len(pages) >= 13, sorted(pages)
    with Browser() as browser:
        for name, page in pages.items():
            flat = name.replace("/", "-").removesuffix(".html")
            shutil.copy(page, kept / f"{flat}.html")
            for width in WIDTHS:
                for dark in (False, True):
                    browser.open(page, width, dark)
                    where = f"{name} at {width}, {'dark' if dark else 'light'}"
                    over = browser.run("document.documentElement.scrollWidth - innerWidth")
                    wrong += [f"{where}: {over} pixels too wide"] if over > 0 else []
                    wrong += [f"{where}: {problem}" for problem in browser.problems]
                    if AXE.is_file():
                        browser.run(f"{AXE.read_text()};0")
                        wrong += [f"{where}: {barrier}" for barrier in browser.run(_BARRIERS)]
                    browser.picture(kept / f"{flat}-{width}-{'dark' if dark else 'light'}.png", whole=False)
    assert not wrong, "\n".join(wrong)
