"""The page in a browser (``make pages``): by words, images, keys, without a script, on a narrow screen."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from browser import CHROMIUM

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("ignore"),
]
ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
IMAGES = ROOT / "build" / "pages"


@pytest.fixture(scope="module")
def address(indexes: Path) -> Iterator[str]:
    """The address of a service over both indexes, as users start it."""
    (indexes / "report.html").write_text("<!doctype html><html lang=en><title>Report</title><h1>Report</h1>")
    command = [sys.executable, "-m", "diptych", "serve", str(indexes / "dense"), str(indexes / "sparse")]
    with subprocess.Popen(
        [*command, "--port", "0", "--no-log"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+?:\d+", process.stdout.readline())
        assert found
        while httpx.get(f"{found[0]}/v1/health").status_code != 200:
            pass
        yield found[0]
        process.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def page_of(browser, address: str, path: str = "/", **context):
    """A page that may send nothing to another host and write no error to its console."""
    opened = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
    page = opened.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda one: one.url.startswith((address, "data:", "blob:")) or problems.append(one.url)
    )
    page.goto(address + path)
    yield page
    opened.close()
    assert problems == []


def ids(page) -> list[str]:
    return page.eval_on_selector_all(".card", "cards => cards.map(one => one.dataset.id)")


def api(address: str, **body: object) -> list[str]:
    return [hit["id"] for hit in httpx.post(f"{address}/v1/search", json=body).json()["hits"]]


def settled(page) -> None:
    page.wait_for_function("() => !document.getElementById('results')?.hasAttribute('aria-busy')")
    page.wait_for_load_state("networkidle")


def test_words_a_panel_and_more_like_this(browser, address: str) -> None:
    with page_of(browser, address) as page:
        page.fill("#words", "a red circle")
        page.press("#words", "Enter")
        page.wait_for_function("() => location.search.includes('red')")
        settled(page)
        found = api(address, text="a red circle", k=48)
        assert ids(page) == found
        page.click(".card >> nth=1")
        page.wait_for_selector("dialog[open] img.big")
        assert page.inner_text("dialog dd >> nth=0") == found[1]
        page.click("dialog [data-more]")
        page.wait_for_function("() => location.search.includes('item=')")
        settled(page)
        assert ids(page) == api(address, item=found[1], k=48)
        with page.expect_event("load"):  # the page is loaded anew
            page.go_back()
        page.wait_for_load_state("networkidle")
        assert ids(page) == found


def test_a_dropped_and_a_pasted_image(browser, address: str, indexes: Path) -> None:
    with page_of(browser, address) as page:
        thumbnail = page.get_attribute(".card >> nth=3 >> img", "src")
        script = """async ([source, kind]) => {
            const content = await (await fetch(source)).blob(), data = new DataTransfer();
            data.items.add(new File([content], "some.jpg", { type: "image/jpeg" }));
            const options = { bubbles: true, cancelable: true };
            document.body.dispatchEvent(kind === "drop" ? new DragEvent("drop", { dataTransfer: data, ...options })
                : new ClipboardEvent("paste", { clipboardData: data, ...options }));
        }"""
        for kind in ("drop", "paste"):
            page.evaluate(script, [thumbnail, kind])
            page.wait_for_selector(".chip img[src^=blob]")
            page.wait_for_selector(".card .score")
            settled(page)
            answer = httpx.get(address + thumbnail)
            files = {"image": ("some.jpg", answer.content, "image/jpeg")}
            found = httpx.post(
                f"{address}/v1/search/image", files=files, data={"request": '{"k": 48}'}
            ).json()["hits"]
            assert ids(page) == [hit["id"] for hit in found]
            page.click(".chip button")
            page.wait_for_function("() => !document.querySelector('.card .score')")


def test_a_result_is_dragged_back(browser, address: str) -> None:
    with page_of(browser, address, "/?q=a+red+circle") as page:
        first = ids(page)[0]
        page.drag_and_drop(".card >> nth=0", "#box")
        page.wait_for_function("() => location.search.includes('item=')")
        settled(page)
        assert ids(page) == api(address, item=first, k=48)


def test_terms_are_bars_and_two_indexes_stand_beside_each_other(browser, address: str) -> None:
    with page_of(browser, address, "/?q=a+red+circle&index=sparse") as page:
        page.click(".card >> nth=0")
        page.wait_for_selector("dialog[open] meter")
        page.keyboard.press("Escape")
        page.select_option("select[name=beside]", "dense")
        page.wait_for_selector(".beside .column >> nth=1")
        settled(page)
        expected = [api(address, text="a red circle", index=name, k=48) for name in ("sparse", "dense")]
        columns = page.query_selector_all(".column")
        assert [ids_in(one) for one in columns] == expected


def ids_in(column) -> list[str]:
    return column.eval_on_selector_all(".card", "cards => cards.map(one => one.dataset.id)")


def test_the_threshold_hides_at_once(browser, address: str) -> None:
    with page_of(browser, address, "/?q=a+red+circle") as page:
        scores = page.eval_on_selector_all(".card", "cards => cards.map(one => Number(one.dataset.score))")
        middle = scores[len(scores) // 2]
        page.eval_on_selector(
            "#least",
            f"one => {{ one.value = {middle}; one.dispatchEvent(new Event('input', {{ bubbles: true }})) }}",
        )
        limit = float(page.input_value("#least"))
        assert limit > 0
        assert page.locator(".card:visible").count() == sum(score >= limit for score in scores)


def test_keys_alone(browser, address: str) -> None:
    with page_of(browser, address) as page:
        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("/")
        page.keyboard.type("a blue star")
        page.keyboard.press("Enter")
        page.wait_for_function("() => location.search.includes('blue')")
        settled(page)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        names = ids(page)
        focused = "document.activeElement.dataset.id"
        assert page.evaluate(focused) == names[1]
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]")
        page.keyboard.press("Escape")
        page.wait_for_function(f"() => {focused} === {names[1]!r}")
        page.keyboard.press("m")
        page.wait_for_function("() => location.search.includes('item=')")
        settled(page)
        assert ids(page) == api(address, item=names[1], k=48)


def test_without_a_script(browser, address: str, indexes: Path, tmp_path: Path) -> None:
    with page_of(browser, address, java_script_enabled=False) as page:
        page.fill("input[name=q]", "a red circle")
        page.click("button.main")
        found = api(address, text="a red circle", k=48)
        links = [one.get_attribute("data-id") for one in page.query_selector_all(".card")]
        assert links == found
        page.click(".card >> nth=0")
        page.click("text=More like this")
        assert [one.get_attribute("data-id") for one in page.query_selector_all(".card")] == api(
            address, item=found[0], k=48
        )
        file = tmp_path / "image.jpg"
        file.write_bytes(httpx.get(address + page.get_attribute(".card img", "src")).content)
        page.goto(address)
        page.set_input_files("input[type=file]", file)
        page.click("text=Search with the image")
        assert page.query_selector(".card .score") is not None


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 768, 1600])
def test_every_width_in_light_and_dark_is_accessible(browser, address: str, width: int, dark: bool) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make pages installs it")
    IMAGES.mkdir(parents=True, exist_ok=True)
    paths = {"home": "/", "found": "/?q=a+red+circle&index=dense&beside=sparse", "evaluation": "/evaluation"}
    paths |= {"item": f"/item/{api(address, text='a', k=1)[0]}?q=a+star&index=sparse"}
    look = {"viewport": {"width": width, "height": 800}, "color_scheme": "dark" if dark else "light"}
    for name, path in paths.items():
        with page_of(browser, address, path, bypass_csp=True, **look) as page:
            page.wait_for_load_state("networkidle")
            check(page, f"{name}-{width}-{'dark' if dark else 'light'}", width)
            if name == "found":
                page.click(".card >> nth=0")
                page.wait_for_selector("dialog[open]")
                check(page, f"panel-{width}-{'dark' if dark else 'light'}", width)


def check(page, name: str, width: int) -> None:
    """Nothing scrolls sideways, axe-core finds nothing serious; a picture is kept to be looked at."""
    page.screenshot(path=IMAGES / f"serve-{name}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.add_script_tag(path=AXE)
    result = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    serious = [
        (one["id"], one["nodes"][0]["html"])
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
