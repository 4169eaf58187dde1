"""What the field's other tools read of ours, and what we read of theirs."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import shlex
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from commands import command, every_byte
from huggingface_hub import ModelCard, constants
from refusals import refused

import diptych as dp
from diptych.api import as_mteb, export
from diptych.api.exchange import _at_cutoffs
from diptych.core.errors import DataError, MissingExtraError, StorageError, UnknownNameError, UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.evaluate import evaluate as evaluate_rows


@pytest.fixture(scope="module")
def world(run_folder: Path, scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = dp.load(run_folder).save(tmp_path_factory.mktemp("exchange") / "tiny")
    command(f"evaluate {folder} --data {scenes_folder} --split test --samples 20 --quiet")
    (evaluation,) = (folder / "evaluation").iterdir()
    part = dp.read(scenes_folder, split="test")
    own = {"run": run_folder, "scenes": scenes_folder, "part": part}
    return SimpleNamespace(encoder=folder, evaluation=evaluation, **own)


def pairs_of(part: dp.Collection, way: str) -> list[tuple[str, str]]:
    images = [part.image_ids[row] for row in part.caption_image]
    pairs = list(zip(images, part.caption_ids, strict=True))
    return pairs if way == "i2t" else [(text, image) for image, text in pairs]


def test_beir_has_both_directions_with_every_pair(world: Any, tmp_path: Path) -> None:
    export(world.part, "beir", tmp_path / "beir")
    refused(UsageError, "is there and not empty", export, world.part, "beir", tmp_path / "beir")
    assert every_byte(export(world.run, "beir", tmp_path / "run")) == every_byte(tmp_path / "beir")
    for way, (queries, corpus) in {"i2t": ("image", "text"), "t2i": ("text", "image")}.items():
        folder, sides = tmp_path / "beir" / way, {}
        for side, name in ((queries, "queries"), (corpus, "corpus")):
            sides[side] = list(map(json.loads, (folder / f"{name}.jsonl").read_text().splitlines()))
        assert [one["_id"] for one in sides["image"]] == list(world.part.image_ids)
        assert [one["text"] for one in sides["text"]] == list(world.part.captions)
        assert all(Path(one["image"]).is_file() and one["text"] == "" for one in sides["image"])
        head, *judged = csv.reader((folder / "qrels" / "test.tsv").read_text().splitlines(), delimiter="\t")
        assert head == ["query-id", "corpus-id", "score"]
        assert judged == [[*pair, "1"] for pair in pairs_of(world.part, way)]


def test_croissant_describes_a_table_that_is_read_again(world: Any, tmp_path: Path) -> None:
    whole, folder = dp.read(world.scenes), export(world.scenes, "croissant", tmp_path / "new", split="all")
    content = json.loads((folder / "croissant.json").read_text())
    (table,), (records,) = content["distribution"], content["recordSet"]
    pairs = folder / table["contentUrl"]
    assert table["sha256"] == hashlib.sha256(pairs.read_bytes()).hexdigest()
    columns = [field["source"]["extract"]["column"] for field in records["field"]]
    assert columns == pairs.read_text().partition("\n")[0].split(",")
    again = dp.read(pairs, images=str(world.scenes))
    assert (list(again.captions), again.split_sizes) == (list(whole.captions), whole.split_sizes)
    np.testing.assert_array_equal(again.image(3), whole.image(3))


def test_trec_files_are_those_of_the_evaluation(world: Any, tmp_path: Path) -> None:
    written = every_byte(export(world.encoder, "trec", tmp_path / "trec"))
    assert sorted(written) == ["i2t.qrels", "i2t.run", "t2i.qrels", "t2i.run"]
    assert written.items() <= every_byte(world.evaluation).items()


def test_measures_at_cutoffs_by_hand(tmp_path: Path) -> None:
    # One query with positives at ranks 1 and 3 and one that is not found; one whose only positive is second.
    (tmp_path / "run").write_text("a 0 x 1 3 t\na 0 y 2 2 t\na 0 z 3 1 t\nb 0 x 1 3 t\nb 0 y 2 2 t\n")
    (tmp_path / "qrels").write_text("a 0 x 1\na 0 z 1\na 0 w 1\nb 0 y 1\n")
    found, second = _at_cutoffs(tmp_path / "run", tmp_path / "qrels"), 1 / np.log2(3)
    assert found["hit_rate_at_1"] == 1 / 2
    assert found["recall_at_3"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["precision_at_3"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert found["mrr_at_10"] == pytest.approx((1 + 1 / 2) / 2)
    assert found["map_at_3"] == pytest.approx(((1 + 2 / 3) / 3 + 1 / 2) / 2)
    assert found["ndcg_at_3"] == pytest.approx(((1 + 1 / 2) / (1 + second + 1 / 2) + second) / 2)


def test_model_card_keeps_everything_else(world: Any, tmp_path: Path) -> None:
    before, result = (world.encoder / "README.md").read_text(), dp.Result.open(world.evaluation)
    file = export(world.evaluation, "model-card")
    card = ModelCard.load(file)
    assert card.text.startswith(ModelCard(before).text.rstrip())
    assert (card.data.model_name, card.data.library_name) == ("tiny", "diptych")
    values = {one.metric_name: one.metric_value for one in card.data.eval_results}
    assert values["R@5, text-to-image retrieval"] == result.value("R@5", "t2i")
    assert values["rsum, both directions"] == result.rsum
    assert {one.dataset_args["protocol"] for one in card.data.eval_results} == {result.protocol_line()}
    assert result.protocol_line() in card.text
    whole = file.read_text()
    assert export(world.encoder, "model-card").read_text() == whole
    other = evaluate_rows(np.eye(4), np.eye(4), about={"dataset": "other", "split": "val"})
    export(other, "model-card", world.encoder)
    both = ModelCard.load(file).data.eval_results
    assert {one.dataset_type for one in both} == {"other", card.data.eval_results[0].dataset_type}
    assert DualEncoder.load(world.encoder).fingerprint == result.protocol.about["encoder"]
    new = export(result, "model-card", tmp_path / "card")
    assert "\n# card\n" in new.read_text()
    new.write_text("---\nmodel-index: [\n---\n")
    refused(StorageError, "cannot be read as a model card", export, result, "model-card", new.parent)


REFUSED = {
    "export tiny --to trec": "nowhere to write",
    "export --to mteb --out x": "needs a run or an evaluation",
    "export tiny --to mteb --data x --out x": "needs a run or an evaluation",
    "export nothing --to mteb --out x": "holds no evaluation",
    "export --to beir --out x": "no data given",
    "export tiny --data x --to beir --out x": "both tiny and --data x are given",
    "export tiny --to beir --evaluation x --out x": "--evaluation with --to beir: that is of data",
    "export tiny --to mteb --split val --out x": "an evaluation is of one split already",
}


def test_refusals(world: Any, monkeypatch: Any, capfd: Any) -> None:
    monkeypatch.chdir(world.encoder.parent)
    for line, error in REFUSED.items():
        with pytest.raises(AssertionError):
            command(line)
        assert error in capfd.readouterr().err.replace("\n", " ")
    refused(UnknownNameError, "unknown form of an export 'bier'", export, world.part, "bier", "x")
    refused(UsageError, "a Collection in memory cannot be written as trec", export, world.part, "trec", "x")
    refused(DataError, "no captions", export, world.part.first_captions(0), "beir", "x")


@pytest.mark.parametrize("to", ["mteb", "trec", "beir", "croissant"])
def test_the_next_step_works_when_pasted(to: str, world: Any, tmp_path: Path, capfd: Any) -> None:
    source = {"beir": world.run, "croissant": f"--data {world.scenes}"}.get(to, world.encoder)
    command(f"export {source} --to {to} --out {tmp_path / 'out'}")
    words = shlex.split(capfd.readouterr().out.rpartition("next: ")[2])
    if words[0] == "diptych":
        return command(shlex.join(words[1:]))
    assert subprocess.run(words, capture_output=True, check=True).stdout


class Hub(BaseHTTPRequestHandler):
    # The few requests that upload a folder and download it again, under any name.
    files: dict[str, bytes]
    commit = "c" * 40

    def reply(self, content: Any, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(200)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = f"http://{self.headers['Host']}/me/tiny"
        answer: dict[str, Any] = {"url": address, "errors": [], "warnings": []}
        if "/preupload/" in self.path:
            files = [{"path": one["path"], "uploadMode": "regular"} for one in json.loads(body)["files"]]
            answer = {"files": [{**one, "shouldIgnore": False} for one in files]}
        elif "/commit/" in self.path:
            lines = [one["value"] for one in map(json.loads, body.splitlines()) if one["key"] == "file"]
            self.files.update({one["path"]: base64.b64decode(one["content"]) for one in lines})
            answer = {"commitUrl": f"{address}/commit/{self.commit}", "commitOid": self.commit}
        self.reply(answer)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if "/resolve/" in path:
            content = self.files[path.partition(f"{self.commit}/")[2]]
            self.reply(content, ETag=hashlib.sha1(content).hexdigest(), X_Repo_Commit=self.commit)
        elif "/tree/" in path:
            sizes = {name: len(content) for name, content in self.files.items()}
            self.reply([{"type": "file", "path": one, "oid": one, "size": sizes[one]} for one in sizes])
        else:
            self.reply({"id": "me/tiny", "sha": self.commit, "siblings": []})

    do_HEAD = do_GET

    def log_message(self, *words: Any) -> None: ...


@pytest.fixture
def hub(monkeypatch: Any) -> Iterator[dict[str, bytes]]:
    files: dict[str, bytes] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Hub,), {"files": files}))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", address)
    yield files
    server.shutdown()
    server.server_close()


def test_an_encoder_goes_to_the_hub_and_comes_back(world: Any, hub: Any, monkeypatch: Any) -> None:
    card, encoder = export(world.encoder, "model-card"), DualEncoder.load(world.encoder)
    assert encoder.push_to_hub("tiny", message="first").endswith("/commit/" + "c" * 40)
    assert hub["README.md"] == card.read_bytes()
    found = dp.load("diptych:me/tiny")
    assert (found.fingerprint, found.loaded_from) == (encoder.fingerprint, "diptych:me/tiny")
    np.testing.assert_array_equal(found.encode_texts("a red square"), encoder.encode_texts("a red square"))
    del hub["diptych.json"]
    refused(UsageError, "me/other holds no encoder that diptych saved", dp.load, "diptych:me/other")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert dp.load("diptych:me/tiny").fingerprint == encoder.fingerprint
    refused(UsageError, "me/third could not be loaded", dp.load, "diptych:me/third")
    refused(UsageError, "cannot upload to me/tiny", encoder.push_to_hub, "me/tiny")


@pytest.fixture
def mteb() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("mteb")


def task_of(mteb: Any, part: dp.Collection, way: str) -> Any:
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval

    images = [part.image(row) for row in range(part.n_images)]
    sides = {
        "i": Dataset.from_dict({"id": list(part.image_ids), "image": images}),
        "t": Dataset.from_dict({"id": list(part.caption_ids), "text": list(part.captions)}),
    }
    relevant: dict[str, dict[str, int]] = {}
    for query, document in pairs_of(part, way):
        relevant.setdefault(query, {})[document] = 1
    about: dict[str, Any] = {"name": f"Tiny{way.upper()}Retrieval", "description": "scenes", "category": way}
    about |= {"dataset": {"path": "no/ne", "revision": "1"}, "eval_langs": ["eng-Latn"]}
    about |= {"type": "Any2AnyRetrieval", "modalities": ["image", "text"], "main_score": "ndcg_at_10"}
    task = type("Tiny", (AbsTaskRetrieval,), {"metadata": mteb.TaskMetadata(**about)})()
    data = {"corpus": sides[way[2]], "queries": sides[way[0]], "relevant_docs": relevant, "top_ranked": None}
    task.dataset, task.data_loaded = {"default": {"test": data}}, True
    return task


def test_mteb_measures_an_encoder_as_the_export_says(mteb: Any, world: Any, tmp_path: Path) -> None:
    encoder, how = as_mteb(world.encoder), {"co2_tracker": False, "show_progress_bar": False}
    assert isinstance(encoder, mteb.EncoderProtocol)
    tasks = [task_of(mteb, world.part, way) for way in ("i2t", "t2i")]
    measured = mteb.evaluate(encoder, tasks, cache=None, **how).task_results
    ours = mteb.TaskResult.from_disk(export(world.encoder, "mteb", tmp_path))
    for result, scores in zip(measured, ours.scores["test"], strict=True):
        (theirs,) = result.scores["test"]
        shared = [name for name in scores if "_at_" in name]
        assert len(shared) == 36
        assert [scores[name] for name in shared] == pytest.approx([theirs[name] for name in shared], abs=1e-5)
    assert ours.get_score() == pytest.approx(np.mean([one.get_score() for one in measured]), abs=1e-5)
    (loaded,) = mteb.ResultCache(cache_path=tmp_path).load_results(include_remote=False).model_results
    assert loaded.model_name == "diptych/tiny"
    rows = encoder.encode([{"text": ["a red square"] * 2, "image": [world.part.image(0)] * 2}])
    assert encoder.similarity(rows, rows).shape == (2, 2)
    assert encoder.similarity_pairwise(rows, rows).tolist() == pytest.approx([1, 1])


def test_a_model_of_mteb_is_an_encoder(mteb: Any, world: Any, monkeypatch: Any) -> None:
    from mteb.models.get_model_meta import MODEL_REGISTRY

    own, part = DualEncoder.load(world.encoder), world.part

    def loader(name: str, revision: str, **options: Any) -> Any:
        return as_mteb(own)

    meta = as_mteb(own).mteb_model_meta.model_copy(update={"loader": loader, "name": "me/tiny"})
    blind = meta.model_copy(update={"name": "me/blind", "modalities": ["text"]})
    for one in (meta, blind):
        monkeypatch.setitem(MODEL_REGISTRY, one.name, one)
    found = dp.load("mteb:me/tiny")
    assert found.describe()["revision"] == own.fingerprint
    assert dp.evaluate(found, part, samples=0).rsum == dp.evaluate(own, part, samples=0).rsum
    refused(UsageError, "mteb:me/blind takes text, not images", dp.load, "mteb:me/blind")


def test_what_mteb_cannot_compare_and_its_absence(world: Any, monkeypatch: Any) -> None:
    encoder = DualEncoder.load(world.encoder)
    with monkeypatch.context() as patch:
        patch.setattr(type(encoder), "similarity", "order")
        refused(UsageError, "compares pictures by order", as_mteb, encoder)
    for name in ("mteb", "mteb.models"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "diptych[mteb]" in refused(MissingExtraError, "needs mteb", as_mteb, encoder).fix
