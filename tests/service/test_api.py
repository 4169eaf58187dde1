"""The HTTP API: the numbers of Python, every way of asking, every refusal with its fix."""

from __future__ import annotations

import base64
import io
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

import diptych as dp
from diptych.index import StoredIndex, open_index
from diptych.service.app import create_app
from diptych.service.options import ServeOptions
from diptych.service.queries import fused
from tests.service.conftest import ready
from tools import openapi


def search(client: TestClient, **body: object) -> list[dict]:
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["hits"]


def ids_of(hits: list[dict]) -> list[str]:
    return [hit["id"] for hit in hits]


def refusal(answer, status: int) -> dict:
    """The problem of an answer, which is of RFC 9457's form and says what to do."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json()
    assert content["status"] == status
    assert content["detail"]
    assert content["fix"]
    assert content["request"] == answer.headers["x-request-id"]
    return content


@pytest.fixture(scope="module")
def searcher(indexes: Path):
    return dp.open_index(indexes / "dense")


@pytest.fixture(scope="module")
def picture(searcher) -> Image.Image:
    return searcher.image(searcher.index.ids[3])


def encoded(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def test_the_document_of_the_api_is_the_checked_in_one() -> None:
    assert json.loads(openapi.FILE.read_text(encoding="utf-8")) == json.loads(json.dumps(openapi.document()))


def test_health_and_indexes(client: TestClient) -> None:
    assert client.get("/v1/health").json().items() >= {"live": True, "ready": True}.items()
    dense, sparse = client.get("/v1/indexes").json()["indexes"]
    assert (dense["name"], dense["vectors"], dense["items"]) == ("dense", "dense", 16)
    assert (sparse["name"], sparse["vectors"], sparse["engine"]) == ("sparse", "sparse", "inverted")


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_words_find_what_they_find_in_python(client: TestClient, indexes: Path, name: str) -> None:
    expected = dp.open_index(indexes / name).search("a red circle", k=5)
    hits = search(client, text="a red circle", k=5, index=name)
    assert ids_of(hits) == [hit.name for hit in expected]
    np.testing.assert_allclose([hit["score"] for hit in hits], [hit.score for hit in expected], rtol=1e-5)
    assert hits[0]["captions"]
    assert Path(hits[0]["path"]).is_file()


def test_an_image_is_taken_as_base64_data_url_and_form(client: TestClient, searcher, picture) -> None:
    text = encoded(picture)
    plain = search(client, image=text, k=4)
    assert ids_of(plain) == [hit.name for hit in searcher.search(picture, k=4)]
    assert search(client, image=f"data:image/png;base64,{text}", k=4) == plain
    files = {"image": ("x.png", base64.b64decode(text), "image/png")}
    form = client.post("/v1/search/image", files=files, data={"request": json.dumps({"k": 4})})
    assert form.json()["hits"] == plain


def test_vectors_items_and_mixtures(client: TestClient, searcher) -> None:
    index, rows = searcher.index, searcher.encoder.encode_texts(["a red circle", "a blue star"])
    first = search(client, vector=rows[0].tolist(), k=3)
    assert ids_of(first) == ids_of(search(client, text="a red circle", k=3))
    [own] = index.vectors([index.ids[2]])
    near = index.search(own[None], 4).ids[0]
    assert near[0] == index.ids[2]
    assert ids_of(search(client, item=index.ids[2], k=3)) == near[1:]
    # By hand: unit rows, weighted, to length 1 again.
    mixed = 2.0 * rows[0] - 0.5 * rows[1] + own
    expected = index.search((mixed / np.linalg.norm(mixed))[None].astype(np.float32), 5)
    parts = [{"text": "a red circle", "weight": 2.0}, {"item": index.ids[2]}]
    hits = search(client, parts=parts, negative=["a blue star"], k=4)
    assert ids_of(hits) == [name for name in expected.ids[0] if name != index.ids[2]][:4]


def test_mixtures_of_terms_are_sums_cut_at_nothing(client: TestClient, indexes: Path) -> None:
    searcher = dp.open_index(indexes / "sparse")
    rows = searcher.encoder.encode_texts(["a red circle", "a blue star"]).toarray()
    mixed = np.maximum(rows[0] - 0.5 * rows[1], 0)
    expected = searcher.index.search(mixed[None], 3)
    hits = search(client, index="sparse", text="a red circle", negative=["a blue star"], k=3)
    assert ids_of(hits) == expected.ids[0]
    weights = {
        term: float(weight) for term, weight in zip(searcher.index.terms, mixed, strict=True) if weight
    }
    assert ids_of(search(client, index="sparse", vector=weights, k=3)) == expected.ids[0]
    refusal(client.post("/v1/search", json={"index": "sparse", "vector": {"no such term": 1}}), 404)


def test_pages_follow_each_other_and_a_threshold_cuts(client: TestClient) -> None:
    whole = search(client, text="a red circle", k=16)
    first, second = (search(client, text="a red circle", k=8, offset=start) for start in (0, 8))
    assert first + second == whole
    answer = client.post("/v1/search", json={"text": "a red circle", "k": 8, "offset": 8}).json()
    assert answer["more"] is False
    limit = whole[4]["score"]
    assert search(client, text="a red circle", k=16, threshold=limit) == [
        hit for hit in whole if hit["score"] >= limit
    ]


def test_several_indexes_are_fused_by_reciprocal_rank(client: TestClient) -> None:
    each = [search(client, text="a red circle", k=16, index=name) for name in ("dense", "sparse")]
    expected = fused([[(hit["id"], hit["score"]) for hit in hits] for hits in each])
    hits = search(client, text="a red circle", k=16, index=["dense", "sparse"])
    assert [(hit["id"], hit["score"]) for hit in hits] == expected[:16]
    both = {"text": "a", "index": ["dense", "sparse"], "threshold": 0.1}
    assert "no threshold" in refusal(client.post("/v1/search", json=both), 422)["detail"]


def test_ranks_are_fused_by_hand() -> None:
    found = dict(fused([[("a", 9.0), ("b", 8.0)], [("b", 0.1), ("c", 0.0)]]))
    assert found == {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}
    assert fused([[], []]) == []


def test_terms_of_a_match_add_up_to_its_score(client: TestClient) -> None:
    [best] = search(client, text="a red circle", k=1, index="sparse")
    body = {"index": "sparse", "text": "a red circle", "match": best["id"], "shown": 2}
    found = client.post("/v1/explain", json=body).json()
    assert found["score"] == pytest.approx(best["score"], rel=1e-5)
    assert sum(one["contribution"] for one in found["terms"]) + found["rest"] == pytest.approx(found["score"])
    refusal(client.post("/v1/explain", json={**body, "index": "dense"}), 422)
    refusal(client.post("/v1/explain", json={**body, "match": "nothing"}), 404)


def test_embeddings_are_the_encoders_in_the_order_of_the_inputs(
    client: TestClient, searcher, picture
) -> None:
    url = f"data:image/png;base64,{encoded(picture)}"
    inputs = ["a red circle that is rather large", url, "a star"]
    answer = client.post("/v1/embeddings", json={"input": inputs, "model": "dense", "user": "x"}).json()
    rows = np.array([one["embedding"] for one in answer["data"]], dtype=np.float32)
    texts = searcher.encoder.encode_texts([inputs[0], inputs[2]])
    expected = np.stack([texts[0], searcher.encoder.encode_images([picture])[0], texts[1]])
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    refusal(client.post("/v1/embeddings", json={"input": inputs, "model": "text-embedding-3-small"}), 404)
    packed = client.post("/v1/embeddings", json={"input": inputs, "encoding_format": "base64"}).json()["data"]
    raw = np.stack([np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in packed])
    np.testing.assert_allclose(raw, expected, atol=1e-5)


BAD = {
    "empty": ({}, 422, "empty"),
    "unknown key": ({"text": "a", "nonsense": 1}, 422, "nonsense"),
    "blank": ({"text": "  "}, 422, "empty"),
    "blank negative": ({"text": "a", "negative": [" "]}, 422, "empty"),
    "k of 0": ({"text": "a", "k": 0}, 422, "k"),
    "no such index": ({"text": "a", "index": "none"}, 404, "index"),
    "no such item": ({"item": "none"}, 404, "item"),
    "width": ({"vector": [1.0, 2.0]}, 422, "width"),
    "width in a mixture": ({"text": "a", "vector": [1.0, 2.0]}, 422, "width"),
    "no number of 32 bits": ({"vector": [1e300] * 8}, 422, "width|finite"),
    "terms of dense": ({"vector": {"red": 1.0}}, 422, "terms|term"),
    "address": ({"image": "https://somewhere/x.png"}, 422, "fetched"),
    "file": ({"image": "file:///etc/passwd"}, 422, "fetched"),
    "no base64": ({"image": "%%%"}, 422, "base64"),
    "no image": ({"image": "aGVsbG8="}, 422, "image"),
    "cancelled": ({"parts": [{"text": "a"}, {"text": "a", "weight": -1}]}, 422, "cancel"),
    "two in a part": ({"parts": [{"text": "a", "item": "b"}]}, 422, "exactly one"),
    "first stage": ({"text": "a", "options": {"first": [[1]]}}, 422, "first"),
    "large option": ({"text": "a", "options": {"ef_search": 10**9}}, 422, "ef_search"),
    "engine option": ({"text": "a", "options": {"nonsense": 1}}, 404, "nonsense"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_refused_with_what_to_do(client: TestClient, name: str) -> None:
    body, status, words = BAD[name]
    found = refusal(client.post("/v1/search", json=body), status)
    assert any(word in found["detail"] for word in words.split("|"))


@pytest.mark.parametrize(
    "body", [b'{"text": "red", "k": 3}', b'{"text": 1}', b"{", b'{"text": "\xff"}', b"[]"]
)
def test_the_short_way_answers_as_the_framework_does(client: TestClient, body: bytes) -> None:
    short, long = (
        client.post("/v1/search", content=body, headers={"content-type": f"application/json{more}"})
        for more in ("", "; charset=utf-8")
    )
    assert short.status_code == long.status_code
    assert short.headers["content-type"] == long.headers["content-type"]
    if short.status_code == 200:
        assert short.content == long.content


def test_bodies_that_are_none(client: TestClient) -> None:
    json_type = {"content-type": "application/json"}
    refusal(client.post("/v1/search", content=b"{", headers=json_type), 400)
    refusal(client.post("/v1/search", content=b'{"text": "\xff"}', headers=json_type), 400)
    refusal(client.post("/v1/search", content=b"x", headers={"content-type": "text/plain"}), 422)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    refusal(client.post("/v1/search/image", content=b"--x\r\nnonsense", headers=broken), 422)
    for bad in ("[]", "{", "null", '{"parts": 3}', '{"k": "many"}'):
        files = {"image": ("x", b"x")}
        refusal(client.post("/v1/search/image", files=files, data={"request": bad}), 422)
    refusal(client.get("/v1/none"), 404)
    refusal(client.put("/v1/search"), 405)


def test_an_error_that_nobody_foresaw_is_a_problem_too(
    serve, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    client = serve()
    client._transport.raise_server_exceptions = False
    monkeypatch.setattr("diptych.service.serving.fused", lambda answers: 1 / 0)
    found = client.post("/v1/search", json={"text": "a", "index": ["dense", "dense"]})
    refusal(found, 500)
    assert "ZeroDivisionError" in caplog.text


def test_images_are_scaled_tagged_and_of_known_items_only(client: TestClient, searcher) -> None:
    name = searcher.index.ids[0]
    [hit] = [one for one in search(client, text="a", k=16) if one["id"] == name]
    answer = client.get(f"{hit['image']}&width=100")
    assert answer.headers["content-type"] == "image/jpeg"
    assert max(Image.open(io.BytesIO(answer.content)).size) <= 160
    again = client.get(f"{hit['image']}&width=100", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for bad in ("..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "none"):
        refusal(client.get(f"/v1/items/{bad}/image"), 404)


def test_links_do_not_lead_out_of_a_collection(tmp_path: Path, run_folder: Path) -> None:
    folder, outside = tmp_path / "pictures", tmp_path / "secret.png"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(outside)
    for name in ("own", "other"):
        Image.new("RGB", (8, 8), "red").save(folder / f"{name}.png")
    dp.build_index(run_folder, dp.read(folder), split="all", out=tmp_path / "index")
    (folder / "other.png").unlink()
    (folder / "other.png").symlink_to(outside)
    app = create_app([str(tmp_path / "index")], ServeOptions(log=False))
    with TestClient(app, base_url="http://localhost") as client:
        ready(client)
        assert client.get("/v1/items/own.png/image").status_code == 200
        assert "outside" in refusal(client.get("/v1/items/other.png/image"), 404)["detail"]


def test_the_same_question_is_answered_from_the_cache(client: TestClient) -> None:
    def cached() -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith("diptych_cache_hits_total")).split()[1])

    first, before = search(client, text="cached words", k=3), cached()
    assert search(client, text="cached words", k=3) == first
    assert cached() == before + 1
    assert search(client, text="cached words", k=4) != first


def test_a_token_is_needed_where_there_is_one(serve) -> None:
    client = serve(token="secret-token")
    refused = client.post("/v1/search", json={"text": "a"})
    refusal(refused, 401)
    assert refused.headers["www-authenticate"] == "Bearer"
    refusal(client.get("/v1/indexes", headers={"authorization": "Bearer other"}), 401)
    refusal(client.get("/metrics"), 401)
    refusal(client.get("/v1/indexes?token=secret-token"), 401)
    assert client.get("/v1/indexes", headers={"authorization": "Bearer secret-token"}).status_code == 200
    assert client.get("/", headers={"accept": "text/html"}).status_code == 401
    page = client.get("/?token=secret-token")
    assert page.status_code == 200
    assert "httponly" in page.headers["set-cookie"].lower()
    assert client.get("/v1/indexes").status_code == 200  # by the cookie


def test_pages_of_others_are_kept_out(client: TestClient) -> None:
    refusal(client.get("/v1/indexes", headers={"host": "["}), 400)
    refusal(client.post("/v1/search", json={"text": "a"}, headers={"origin": "http://[x"}), 400)
    refusal(client.get("/v1/indexes", headers={"host": "evil.example"}), 403)
    refusal(client.post("/v1/search", json={"text": "a"}, headers={"origin": "http://evil.example"}), 403)
    same = {"origin": "http://localhost"}
    assert client.post("/v1/search", json={"text": "a"}, headers=same).status_code == 200


def test_limits_of_size_count_and_pixels(serve, picture) -> None:
    client = serve(max_body=0.05, max_items=2, max_pixels=0.001)
    refusal(client.post("/v1/search", json={"text": "a", "image": "A" * 60_000}), 413)
    chunks = (b"x" * 20_000 for _ in range(4))
    refusal(client.post("/v1/search", content=chunks, headers={"content-type": "application/json"}), 413)
    refusal(client.post("/v1/embeddings", json={"input": ["a", "b", "c"]}), 413)
    assert "pixels" in refusal(client.post("/v1/search", json={"image": encoded(picture)}), 422)["detail"]


def test_items_are_added_and_deleted_on_disk_before_the_answer(serve, tmp_path: Path, picture) -> None:
    client = serve(writable=True)
    red = encoded(Image.new("RGB", (32, 32), "red"))
    before = search(client, image=red, k=1)
    item = {"image": red, "id": "new", "captions": ["all red"]}
    answer = client.post("/v1/items", json={"items": [item]})
    assert answer.json() == {"index": "dense", "ids": ["new"], "items": 17}
    stored = open_index(tmp_path / "dense")
    assert "new" in stored
    hits = search(client, image=red, k=1)
    assert ids_of(hits) == ["new"] != ids_of(before)
    assert hits[0]["captions"] == ["all red"]
    assert client.get(f"{hits[0]['image']}").status_code == 200
    refusal(client.post("/v1/items", json={"items": [item]}), 422)
    assert client.post("/v1/items", json={"items": [item], "replace": True}).status_code == 200
    stolen = {"image": red, "id": "stolen", "metadata": {"path": "/etc/passwd"}}
    refusal(client.post("/v1/items", json={"items": [stolen]}), 422)
    assert client.delete("/v1/items/new").json()["items"] == 16
    assert "new" not in open_index(tmp_path / "dense")
    refusal(client.delete("/v1/items/new"), 404)
    assert ids_of(search(client, image=red, k=1)) == ids_of(before)


def test_compacting_deletes_images_that_no_item_has(serve, tmp_path: Path) -> None:
    client = serve(writable=True)
    for name in ("kept", "deleted"):
        image = encoded(Image.new("RGB", (8, 8), "red" if name == "kept" else "blue"))
        client.post("/v1/items", json={"items": [{"image": image, "id": name}]})
    stored = StoredIndex(tmp_path / "dense")
    paths = {name: Path(stored.index.records[name]["path"]) for name in ("kept", "deleted")}
    client.delete("/v1/items/deleted")
    assert stored.compact()
    assert all(path.is_file() for path in paths.values())  # it may belong to an item that is underway
    for path in paths.values():
        os.utime(path, (0, 0))
    assert not stored.compact()
    assert [name for name, path in paths.items() if path.is_file()] == ["kept"]


def test_a_read_only_service_changes_nothing(client: TestClient, searcher) -> None:
    refusal(client.delete(f"/v1/items/{searcher.index.ids[0]}"), 403)
    refusal(client.post("/v1/items", json={"items": [{"image": "AAAA"}]}), 403)


def test_an_index_that_is_replaced_is_served_anew(
    serve, tmp_path: Path, run_folder: Path, scenes_folder: Path
) -> None:
    client = serve()
    assert client.get("/v1/indexes").json()["indexes"][0]["items"] == 16
    other = dp.build_index(run_folder, dp.read(scenes_folder), split="all", out=tmp_path / "dense")
    until = time.monotonic() + 20
    while client.get("/v1/indexes").json()["indexes"][0]["items"] != len(other):
        assert search(client, text="a red circle", k=1)
        assert time.monotonic() < until
        time.sleep(0.05)
    assert len(search(client, text="a red circle", k=50)) == 50


def test_another_encoder_than_that_of_the_index_is_refused(
    indexes: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    short = {"stages.0.epochs": 1, "batches.size": 16, "model.width": 16}
    run = dp.train("scenes", dp.read(scenes_folder), out=tmp_path / "run", settings=short)
    guard = create_app([str(indexes / "dense")], ServeOptions(log=False, encoder=str(run.folder)))
    with TestClient(guard, base_url="http://localhost") as client:
        until = time.monotonic() + 30
        while guard.serving.problem is None and time.monotonic() < until:
            time.sleep(0.02)
        assert "encoder" in str(guard.serving.problem)
        assert client.get("/v1/health").status_code == 503
