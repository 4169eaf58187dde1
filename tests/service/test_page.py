"""The page: without a script, from the address to the answer."""

from __future__ import annotations

import html
import io
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image
from starlette.testclient import TestClient


def cards(text: str) -> list[str]:
    """The ids of the results on a page."""
    return [html.unescape(one) for one in re.findall(r'data-id="([^"]*)" data-index', text)]


def found(client: TestClient, **body: object) -> list[str]:
    return [hit["id"] for hit in client.post("/v1/search", json=body).json()["hits"]]


def test_the_page_shows_what_the_api_finds(client: TestClient) -> None:
    answer = client.get("/", params={"q": "a red circle"})
    assert answer.status_code == 200
    assert cards(answer.text) == found(client, text="a red circle", k=48)
    first = client.get(html.unescape(re.search(r'href="(/item/[^"]*)"', answer.text)[1]))
    assert "More like this" in first.text
    assert "curl" in first.text


def test_an_empty_search_shows_what_there_is(client: TestClient) -> None:
    answer = client.get("/")
    assert len(cards(answer.text)) == 16
    assert 'class="score"' not in answer.text


def test_forms_with_an_image_filters_and_negative_words(client: TestClient) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(buffer, "PNG")
    sent = client.post("/", files={"image": ("red.png", buffer.getvalue(), "image/png")}, data={"q": ""})
    assert len(cards(sent.text)) == 16
    both = client.get("/", params={"q": "a red circle", "not": "a star"})
    assert cards(both.text) == found(client, text="a red circle", negative=["a star"], k=48)
    item = cards(sent.text)[0]
    like = client.get("/", params={"item": item})
    assert cards(like.text) == found(client, item=item, k=48)


def test_two_indexes_stand_beside_each_other(client: TestClient) -> None:
    answer = client.get("/", params={"q": "a red circle", "index": "dense", "beside": "sparse"})
    columns = answer.text.split('<section class="column"')[1:]
    assert [cards(one) for one in columns] == [
        found(client, text="a red circle", index=name, k=48) for name in ("dense", "sparse")
    ]


def test_terms_of_a_match_are_bars(client: TestClient) -> None:
    [best] = found(client, text="a red circle", index="sparse", k=1)
    answer = client.get(f"/item/{best}", params={"q": "a red circle", "index": "sparse"})
    assert "Terms that match" in answer.text
    assert "<meter" in answer.text


def test_words_of_others_stay_words(client: TestClient) -> None:
    bad = '"><script>alert(1)</script>'
    answer = client.get("/", params={"q": bad, "index": "dense"})
    assert "<script>alert" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({"q": "a", "index": "none"}, 404, "unknown index"),
        ({"item": "none"}, 404, "unknown item"),
        ({"q": "x" * 10_001}, 422, "10000"),
        ({"q": "a", "least": "nonsense", "offset": "-5"}, 200, "data-id"),
        ({"q": "a", "offset": "99999999999"}, 200, "16 images"),
    ],
)
def test_what_cannot_be_is_said_on_the_page(
    client: TestClient, params: dict, status: int, words: str
) -> None:
    answer = client.get("/", params=params)
    assert answer.status_code == status
    assert words in answer.text
    assert 'role="search"' in answer.text


def test_a_part_of_the_page_is_what_the_script_asks_for(client: TestClient) -> None:
    part = client.get("/", params={"q": "a red circle"}, headers={"x-fragment": "1"}).text
    assert "<html" not in part
    assert cards(part) == found(client, text="a red circle", k=48)


def test_files_of_the_page_need_no_other_host(client: TestClient) -> None:
    text = client.get("/").text
    for address in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert not urlsplit(html.unescape(address)).netloc
    for name in ("style.css", "page.js", "icon.svg"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/none").status_code == 404
    assert client.get("/static/..%2Fpage.py").status_code == 404


def test_reports_beside_an_index_are_shown_in_a_sandbox(serve, tmp_path) -> None:
    client = serve()
    (tmp_path / "report.html").write_text("<title>Report</title>")
    answer = client.get("/evaluation")
    source = html.unescape(re.search(r'<iframe[^>]*src="([^"]+)"', answer.text)[1])
    assert parse_qs(urlsplit(source).query)["show"] == [f"{tmp_path.name}/report"]
    report = client.get(source)
    assert report.text == "<title>Report</title>"
    assert "sandbox" in report.headers["content-security-policy"]
    assert client.get("/evaluation/file?show=../x").status_code == 404
