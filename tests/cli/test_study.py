"""The papers' tables from the command line: listed, shown, run and judged; what data and values they take."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from refusals import refused

from diptych.cli.study import RunOptions, StudyData, run_chosen
from diptych.commerce.scenes.shop_log import make_shop_log
from diptych.core.errors import DiptychError
from diptych.data.several import DataChoices
from diptych.studies import STUDIES
from diptych.studies.page import PLANTED
from diptych.studies.plan import needs_of

SMALL = (
    "model.width=16",
    "model.image.preprocessing={size = 32, resize = 32}",
    "model.text.word_width=8",
    "model.text.min_count=1",
    "batches.size=16",
    "stages.0.epochs=1",
    "stages.0.warmup=0",
)
QUICK = " ".join(["--setting quick --seeds 0 --accelerator cpu", *(f"--set '{value}'" for value in SMALL)])


def test_list_and_show(diptych, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = diptych("study list")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for study in STUDIES:
        full = "data" if study.ours and "paper" not in study.settings else "paper"
        times = [study.settings[key].duration for key in ("quick", full)]
        assert " ".join([study.name, study.topic, *times]) in lines
    assert max(map(len, done.out.partition("next:")[0].splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "6000")
    study = STUDIES.get("ltd.table-2")
    done = diptych("study show ltd.table-2")
    done.shows("58.0", "--rows", "diptych study run ltd.table-2 --quick", "needs, besides data", "GPU memory")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for name, setting in study.settings.items():
        (line,) = (line for line in lines if line.startswith(f"{name} {setting.description}"))
        assert setting.duration in line
        assert setting.memory in line
        for one in setting.deviations:
            assert f"note: setting {name} is not what the paper says: {one}" in lines
    for row in study.rows:
        (line,) = (line for line in lines if line.startswith(f"{row.name} {row.label} "))
        assert needs_of(study, row)
        assert line.endswith(needs_of(study, row))
    for columns in (80, 250):  # ten columns have no room on a narrow line: the rest of them follow below
        monkeypatch.setenv("COLUMNS", str(columns))
        done = diptych("study show d2s.table-3.6")
        done.shows("13277", "9739", "183.42", "193.46", ">700.00", "D2S, HNSW")
        assert max(len(line) for line in done.out.splitlines() if "13277" in line) <= columns
    diptych("study show convse.table-3").shows("483.6", "12 of 14 comparisons hold")
    none = "no number is printed (anonymous: thesis-shop anonymous sessions of 12 pages"
    diptych("study show intent.figure-6.7").shows(none)


def test_studies_are_run_and_judged_on_other_data(diptych, scenes_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    out, counts = tmp_path / "metric-learning.table-1", tmp_path / "metric-learning.table-2"
    some = f"--data {scenes_folder} {QUICK}"
    done = diptych(f"study run metric-learning.table-1 --rows 1.1,1.3 --out {out} {some}")
    done.shows("row 2 of 2: VSE++, NT-Xent: training", "Not a reproduction: on scenes", "353.8±1.6")
    done.shows(f"next: diptych study verdict {out}", "rightly counted", "(2)", *PLANTED.split(". ")[:1])
    page = (out / "report.html").read_text()
    assert "Not a reproduction" in page
    assert "--rows 1.1,1.3" in page
    again = diptych(f"study verdict {out}")
    assert again.out.splitlines()[0] in done.out
    diptych(f"study verdict {out}/rows/vsepp-triplet/seed-0 --out {tmp_path}/one.html")
    assert (tmp_path / "one.html").is_file()
    # Another table of the paper has the row: it is there already.
    counted = diptych(f"study run metric-learning.table-2 --rows 1.1 --out {counts} {some}")
    counted.shows("VSE++, Triplet loss: there already", "C^B")
    # All of them on one page.
    both = diptych(f"study verdict {out} {counts} --out {tmp_path}/pages/matrix.html")
    both.shows("Studies and their verdicts", "four losses compared", "gradient of triplet losses")
    both.hides("rightly counted")
    matrix = json.loads((tmp_path / "pages" / "matrix.json").read_text())
    assert [row[:3] for row in matrix["rows"]] == [
        ["metric-learning.table-1", "four losses compared", "quick"],
        ["metric-learning.table-2", "gradient of triplet losses", "quick"],
    ]
    page = (tmp_path / "pages" / "matrix.html").read_text()
    for study in (out, counts):
        assert f"../{study.name}/report.html" in page
        found = json.loads((study / "report.json").read_text())
        assert (found["study"], found["reproduces"]) == (study.name, False)
        assert (study / "report.html").is_file()


def test_all_studies_are_run_and_one_that_fails_is_named(diptych, tmp_path, monkeypatch):
    """What can be run is, and stands on the page; the exit code says that not all could."""
    monkeypatch.setenv("COLUMNS", "200")
    study = STUDIES.get("metric-learning.table-1")
    values = {"n_train": 48, "n_val": 16, "n_test": 16, "size": 32}
    quick = study.settings["quick"]
    small = {"data.scenes": values, "model.width": 16, "model.text.min_count": 1, "stages.0.epochs": 1}
    small |= {"model.image.preprocessing": {"size": 32, "resize": 32}, "stages.0.warmup": 0}
    changed = replace(quick, changes={"*": small}, rows=("vsepp-triplet",))
    runs = replace(study, settings={"quick": changed})
    sunday = replace(quick, left_out={"*": "it is Sunday"})
    fails = replace(STUDIES.get("metric-learning.table-2"), settings={"quick": sunday})
    monkeypatch.setattr(STUDIES, "get", {one.name: one for one in (runs, fails)}.__getitem__)
    monkeypatch.setattr("diptych.cli.study.STUDIES", _Some(runs, fails))
    out = tmp_path / "out"
    done = diptych(f"study run --all --quick --accelerator cpu --out {out}", code=2)
    done.shows("metric-learning.table-1: four losses compared", "Studies and their verdicts")
    done.says("1 studies failed: metric-learning.table-2", "run each by itself to see why")
    rows = json.loads((out / "matrix.json").read_text())["rows"]
    assert [row[0] for row in rows] == [runs.name, fails.name]
    assert rows[1][1].startswith("failed: ")
    assert "it is Sunday" in rows[1][1]
    assert f'"{runs.name}/report.html"' in (out / "matrix.html").read_text()


class _Some(list):
    """Some of the studies."""

    def __init__(self, *studies):
        super().__init__(studies)
        self.get = STUDIES.get


def test_each_collection_has_its_own_options():
    given = DataChoices(
        data=["coco=annotations.json", "shop.2=items.csv", "scenes"],
        images=["coco=val2014", "pictures"],
        reader=["coco=karpathy"],
        reader_option=["coco.restval=true", "shop.2.caption_column=title", "sep=;"],
        skip_bad_images=True,
    )
    coco, shop, scenes = (dict(section) for _, section in given.several())
    assert [name for name, _ in given.several()] == ["coco", "shop.2", ""]
    assert (coco["path"], coco["reader"]) == ("annotations.json", "karpathy")
    assert coco["options"] == {"sep": ";", "restval": True, "images": str(Path("val2014").resolve())}
    assert shop["options"]["caption_column"] == "title"
    assert shop["options"]["images"] == scenes["options"]["images"] == str(Path("pictures").resolve())
    assert shop["reader"] is None
    assert scenes["options"]["sep"] == ";"
    assert all(section["skip_bad_images"] for section in (coco, shop, scenes))


def test_a_path_that_is_there_is_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    ((name, section),) = DataChoices(data=["a=b"]).several()
    assert (name, section["path"]) == ("", str(tmp_path / "a=b"))
    assert DataChoices(data=["a=b"]).one() == section
    assert DataChoices().one() is None
    assert DataChoices().several() == ()


def test_names_that_do_not_fit():
    for given, message in (
        ({"data": ["a=x", "a=y"]}, "two collections are called 'a'"),
        ({"data": ["a=x"], "images": ["b=y"]}, "collection of --images 'b'"),
        ({"data": ["a=x"], "reader": ["a=csv", "a=pairs"]}, "--reader is given twice for a"),
        ({"data": ["a=x"], "reader_option": ["b.images=y"]}, "--reader-option 'b'"),
        ({"data": ["a=x"], "reader_option": ["a.images"]}, "is not KEY=VALUE"),
    ):
        refused(DiptychError, message, DataChoices(**given).several)
    refused(DiptychError, "--data is given 2 times", DataChoices(data=["a", "b"]).one)


def test_files_that_are_named_are_found_from_anywhere(tmp_path, monkeypatch):
    """A value that is a path from here is kept whole; a name stays one."""
    monkeypatch.chdir(tmp_path)
    seen = {}
    monkeypatch.setattr("diptych.cli.study.run_study", lambda *given, **_: seen.update(given[2].values))
    for study, keys in {
        "d2s.table-3.1": ("dense", "measure.words", "sparsify.vocabulary.source"),
        "brittleness.table-5.3": ("clip", "encoder", "bag", "measure.relevance", "measure.wordnet"),
        "cti.table-7.1": ("features.weights",),
        "reproducibility.table-2.1": ("clip", "x-vlm", "fine_tune", "model.image.weights"),
        "svl.table-4.1": ("fine_tune", "shortcuts.digits"),
    }.items():
        for value, whole in ((tmp_path.name, tmp_path.name), (f"../{tmp_path.name}", str(tmp_path))):
            seen.clear()
            options = RunOptions(quick=True, set_=[f"{key}={value}" for key in keys])
            run_chosen(STUDIES.get(study), tmp_path / "out", StudyData(), options)
            assert seen == dict.fromkeys(keys, whole)


def test_several_are_run_with_one_command(diptych, scenes_folder, run_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "reproducibility.table-2.2"
    done = diptych(f"data scenes --train 0 --val 0 --test 12 --size 32 --objects 1 --out {tmp_path}/o")
    assert "object-centric" in done.out
    done = diptych(
        f"study run reproducibility.table-2.2 --data flickr8k={scenes_folder} --data "
        f"things={tmp_path}/o --set clip={run_folder} --set x-vlm={run_folder} --rows clip,x-vlm "
        f"--out {out}"
    )
    done.shows("row 2 of 2: X-VLM: measuring on things", "things test: 12 images", "protocol: dataset things")
    page = (out / "report.html").read_text()
    assert "--data flickr8k=" in page
    assert ">things<" in page


def test_a_quick_study_of_a_generated_log(diptych, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    found = {}
    for name in ("intent.table-6.2", "intent.figure-6.3"):
        study = STUDIES.get(name)
        quick = replace(study.settings["quick"], generated={"visitors": 150})
        found[name] = replace(study, settings={**study.settings, "quick": quick})
    monkeypatch.setattr(STUDIES, "get", found.__getitem__)
    done = diptych("study run intent.table-6.2 --quick")
    done.shows("scenes: importing events", "Not a reproduction: on scenes", "71.07")
    done.shows("diptych intent describe", "next: diptych study verdict studies/intent.table-6.2")
    assert "seeds" not in done.out
    page = Path("studies/intent.table-6.2/report.html").read_text()
    assert "diptych study run intent.table-6.2 --quick" in page
    other = diptych("study run intent.figure-6.3 --quick")
    assert "importing events" not in other.out  # nothing was made again
    assert "Rate, %" in diptych("study verdict studies/intent.table-6.2").out
    diptych("study verdict studies/intent.table-6.2 --hide-rates").hides("Rate, %")


def test_raw_events_are_imported_first(diptych, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    raw = make_shop_log(tmp_path / "raw", visitors=60)
    data = f"--data {raw} --reader shop-log --reader-option name=mine --reader-option zone=UTC"
    line = f"study run intent.table-6.1 {data} --set measure.gap=20 --out {tmp_path}/studies/here"
    diptych(line).shows("on mine: ", "(UTC)", "ended by more than 20 minutes")
    assert (tmp_path / "studies" / "intent.logs").is_dir()
    done = diptych(f"study run intent.table-6.7 --out {tmp_path}/features")  # against the thesis at once
    done.shows("cells: 45 reproduced")
