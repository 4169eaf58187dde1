"""Running a study: what is made, used again, refused and kept; recipes of every row; what a person sets."""

from __future__ import annotations

import json
import shutil
import signal
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import command
from study_runs import run_study

from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, RecipeError, StorageError, UnknownNameError, UsageError
from diptych.core.locking import exclusive_folder
from diptych.data import read_collection
from diptych.data.scenes import make_scenes
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.evaluate_encoder import evaluate_encoder
from diptych.studies import STUDIES, Choices, Results, collect, compare
from diptych.studies.plan import needs_of
from diptych.studies.results import StudyFolder, entries_in
from diptych.studies.runner import changed_keys, plan_of, setting_for
from diptych.studies.study import PUBLISHED
from diptych.training import again
from diptych.training.recipe import Recipe, load_recipe
from diptych.training.run import Run

TRIPLET = {"rows": ["1.1"], "seeds": [0]}


def test_a_base_is_planned_once_and_first(small_study, tmp_path):
    plan = plan_of(small_study, tmp_path, Choices(setting="quick"), tmp_path)
    first, _, onwards = small_study.rows
    units = plan.units([onwards], [1, 2], [])
    found = [(unit.row.name, unit.seed, unit.shown) for unit in units]
    assert found == [("vsepp-triplet", 0, False), ("onwards", 1, True), ("onwards", 2, True)]
    places = ["row 1 of 2", "row 2 of 2, seed 1 of 2", "row 2 of 2, seed 2 of 2"]
    assert [unit.place for unit in units] == places
    both = [(unit.row.name, unit.seed, unit.shown) for unit in plan.units([onwards, first], [3], [])]
    assert both == [("vsepp-triplet", 0, False), ("onwards", 3, True), ("vsepp-triplet", 3, True)]
    assert [unit.seed for unit in plan.units([first], [1, 2], ["vsepp-triplet"])] == [0]  # no seed changes it


@pytest.fixture
def copied(made, tmp_path):
    """The folder, for tests that change it."""
    return Path(shutil.copytree(made[0], tmp_path / "out"))


def test_a_study_is_run_and_kept(made):
    folder, results, told = made
    rows = [("vsepp-triplet", 0), ("vsepp-triplet", 1), ("onwards", 0), ("onwards", 1)]
    assert [(entry.row, entry.seed) for entry in results.entries] == rows
    assert Results.open(folder / "results.json") == results
    about = StudyFolder.open(folder / "study.json")
    assert (about.study, about.setting, about.command) == ("made-up.table-1", "quick", "diptych study run x")
    assert told[0] == "row 1 of 2, seed 1 of 2: Triplet: training"
    # The third row has gone on from the first row's weights.
    recipe = (folder / "rows" / "onwards" / "seed-1" / "recipe.toml").read_text()
    assert f'warm_start = "{folder / "rows" / "vsepp-triplet" / "seed-0"}"' in recipe
    entry = results.of("vsepp-triplet")[0]
    (measured,) = entry.measurements
    assert (measured.on.dataset, measured.on.split, measured.on.images) == ("scenes", "test", 16)
    assert "i2t mAP@5" + PUBLISHED in measured.values
    recalls = [measured.values[f"{way} R@{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert measured.values["rsum"] == pytest.approx(sum(recalls))
    assert measured.values["i2t average recall"] == pytest.approx(sum(recalls[:3]) / 3)
    assert measured.trajectory is not None
    assert len(measured.trajectory.steps) == 15  # 240 captions in batches of 16
    assert len(measured.trajectory.rsum) == 1
    assert "--measure mAP-hits@5" in measured.commands[0]
    assert entry.cpu_seconds > 0
    assert {one.data.partition(",")[0] for one in results.entries} == {"scenes: 80 images"}  # of fewer too
    assert "batches.size" in entry.changed


def test_what_is_there_is_used_again(small_study, choices, made):
    told = []
    again = run_study(small_study, made[0], choices, tell=told.append, **TRIPLET)
    assert told == ["row 1 of 1: Triplet: there already"]
    assert again == made[1]  # what earlier calls gave is there too
    assert again.evidence().figures["onwards"]["rsum"].seeds == 2


def test_what_was_measured_otherwise_is_measured_again(small_study, choices, copied):
    """Another way of measuring, a changed evaluation and a spoiled entry: none stands for a measurement."""
    told = []
    run = copied / "rows" / "vsepp-triplet" / "seed-0"
    plain = replace(small_study, measure={"kind": "retrieval"})
    run_study(plain, copied, choices, tell=told.append, **TRIPLET)
    (run / "studies" / "made-up.table-1.json").write_text("{")
    run_study(plain, copied, choices, rows=["1.1"], seeds=[0], tell=told.append)
    shutil.rmtree(run / "evaluation")
    run_study(plain, copied, choices, rows=["1.1"], seeds=[0], tell=told.append)
    assert told == ["row 1 of 1: Triplet: there already", "row 1 of 1: Triplet: measuring"] * 3


def test_the_measured_number_is_that_of_evaluate(choices, made, tmp_path):
    """Features cached for the whole study give the rows that the encoder gives for the pictures."""
    (measured,) = made[1].of("vsepp-triplet")[0].measurements
    assert choices.data is not None
    part = read_collection(choices.data["path"]).split("test")
    encoder = DualEncoder.load(made[0] / "rows" / "vsepp-triplet" / "seed-0" / "best")
    by_hand = evaluate_encoder(encoder, part, tmp_path / "by hand", samples=0)
    for way in ("i2t", "t2i"):
        recalls = [100 * by_hand.value(f"R@{k}", way) for k in (1, 5, 10)]
        assert [measured.values[f"{way} R@{k}"] for k in (1, 5, 10)] == pytest.approx(recalls)


def test_interrupted_it_goes_on_to_the_same_numbers_and_no_other_process_trains_it(
    small_study, choices, made, tmp_path
):
    """The folder of a run that another process trains is refused; one that is finished is free to use."""
    folder = tmp_path / "rows" / "vsepp-triplet" / "seed-0"
    steps = iter([False] * 5 + [True] * 100)

    def should_stop():
        with pytest.raises(StorageError), exclusive_folder(folder):
            pass
        return next(steps)

    with pytest.raises(Interrupted):
        run_study(small_study, tmp_path, choices, should_stop=should_stop, **TRIPLET)
    assert not list(entries_in(small_study, tmp_path))
    with exclusive_folder(folder), pytest.raises(StorageError, match="another process is working in"):
        run_study(small_study, tmp_path, choices, **TRIPLET)
    told = []
    resumed = run_study(small_study, tmp_path, choices, tell=told.append, **TRIPLET)
    assert told[0] == "row 1 of 1: Triplet: resumed"
    assert resumed.values("vsepp-triplet", "rsum") == made[1].values("vsepp-triplet", "rsum")[:1]
    with exclusive_folder(folder):
        assert run_study(small_study, tmp_path, choices, **TRIPLET) == resumed


def test_several_devices_are_a_command_that_is_stopped_and_reported(recipe_file, tmp_path, monkeypatch):
    """Typed as a user would; ended as with Ctrl-C, and its exit code is an error."""
    run, features = Run.prepare(tmp_path / "run", load_recipe(recipe_file)), tmp_path / "features"
    ends, sent, typed = [None, None, 3], [], []

    class Process:
        def __init__(self, words, **options):
            typed[:] = words[1:]

        def poll(self):
            self.returncode = ends.pop(0)
            return self.returncode

        def send_signal(self, number):
            sent.append(number)

        def wait(self):
            ends[:] = [130]

    monkeypatch.setattr(again.subprocess, "Popen", Process)
    monkeypatch.setattr(again.time, "sleep", lambda seconds: None)
    start, how = ["-m", "diptych", "train"], ["--devices", "2", "--accelerator", "cpu", "--features"]
    with pytest.raises(UsageError, match=r"was not trained \(exit code 3\)"):
        again.train(run, None, 2, features, "cpu")
    recipe = tmp_path / "recipe-run.toml"
    assert typed == [*start, str(recipe), "--out", str(run.folder), *how, str(features)]
    assert load_recipe(recipe) == run.recipe
    assert not sent
    run.begin({})
    ends[:] = [None]
    with stop_when(lambda: True), pytest.raises(Interrupted, match="nothing is lost"):
        again.train(run, None, 2, features, "cpu")
    assert typed == [*start, "--resume", str(run.folder), *how, str(features)]
    assert sent == [signal.SIGINT]


@pytest.mark.slow
def test_several_devices_train_a_row_as_one_does(small_study, choices, made, tmp_path):
    """Stopped after a step it goes on, and what it leaves is a run as any other."""
    folder = tmp_path / "rows" / "vsepp-triplet" / "seed-0"
    log = folder / "metrics.jsonl"
    some = {**TRIPLET, "devices": 2}
    with pytest.raises(Interrupted, match="nothing is lost"):
        run_study(small_study, tmp_path, choices, should_stop=lambda: log.is_file(), **some)
    assert not Run.open(folder).finished
    told = []
    results = run_study(small_study, tmp_path, choices, tell=told.append, **some)
    assert told == ["row 1 of 1: Triplet: resumed", "row 1 of 1: Triplet: measuring"]
    one, both = Run.open(made[0] / folder.relative_to(tmp_path)), Run.open(folder)
    assert both.recipe == one.recipe
    assert both.finished
    assert [line.get("step") for line in both.metrics()] == [line.get("step") for line in one.metrics()]
    (entry,), first = results.entries, made[1].entries[0]
    assert entry.measurements[0].values.keys() == first.measurements[0].values.keys()
    assert (entry.epochs, entry.changed) == (first.epochs, first.changed)
    assert entry.cpu_seconds > first.cpu_seconds  # that of the processes, each of which begins by itself


def test_nothing_is_overwritten(small_study, choices, copied):
    def refused(study, folder, chosen, said):
        with pytest.raises(UsageError, match=said) as caught:
            run_study(study, folder, chosen, **TRIPLET)
        return caught.value.fix

    wider = replace(choices, values={**choices.values, "model.width": 32})
    assert refused(small_study, copied, wider, "begun with model.width") == "choose another folder with --out"
    # A run in the home of another study: another folder beside it would have the same home.
    other = replace(small_study, name="made-up.table-2")
    guest = replace(other, rows=tuple(replace(row, home=copied.name) for row in small_study.rows))
    fix = refused(guest, copied.parent / "guest", wider, "begun with model.width")
    assert fix == f"its runs are in {copied}: choose a folder in another parent folder with --out"
    refused(other, copied, choices, "holds study 'made-up.table-1'")
    more = replace(small_study, settings={name: small_study.settings["quick"] for name in ("quick", "data")})
    fix = refused(more, copied, replace(choices, setting="data"), "holds setting 'quick', not 'data'")
    assert fix.endswith("or stay with --setting quick")
    pictures = {"path": str(make_scenes(copied.parent / "other", 48, 16, 16, size=32, seed=1, workers=1))}
    refused(small_study, copied, replace(choices, data=pictures), "begun with captions of scenes")


def test_a_study_without_a_row_that_can_run(small_study, choices, tmp_path):
    setting = replace(small_study.settings["quick"], left_out={"vsepp-*": "it is Sunday"})
    sunday = replace(small_study, settings={"quick": setting})
    with pytest.raises(UsageError, match="vsepp-triplet it is Sunday"):
        run_study(sunday, tmp_path / "out", choices, rows=["1.1"])
    assert not (tmp_path / "out").exists()


def test_results_are_found_again(small_study, made, tmp_path, monkeypatch):
    folder, results, _ = made
    runs = sorted((folder / "rows").glob("*/seed-*"))
    assert len(runs) == 4
    (found,) = collect(runs)
    every = {(one.row, one.seed): one for one in results.entries}
    assert {(one.row, one.seed): one for one in found.entries} == every
    monkeypatch.setattr(STUDIES, "get", {"made-up.table-1": small_study}.__getitem__)
    assert collect([folder]) == [results]
    moved = shutil.copytree(folder, tmp_path / "moved")
    assert {entry.run for entry in collect([moved])[0].entries} == {
        str(tmp_path / "moved" / run.relative_to(folder)) for run in runs
    }
    with pytest.raises(UsageError, match="holds nothing that a study has measured"):
        collect([tmp_path])
    first, second, *_ = results.entries
    with pytest.raises(UsageError, match="differ"):
        Results("made-up.table-1", (first, replace(second, data="flickr8k")))


def test_further_judgements_are_measured_beside_the_own_ones(small_study, choices, copied):
    assert choices.data is not None
    part = read_collection(choices.data["path"]).split("test")
    # Every caption is relevant to every image: then the first place is always right.
    file = copied.parent / "all.json"
    file.write_text(json.dumps({"i2t": {image: list(part.caption_ids) for image in part.image_ids}}))
    told = []
    judged = replace(choices, positives=f"pairs:{file}")
    results = run_study(small_study, copied, judged, tell=told.append, **TRIPLET)
    assert told[-1].endswith("Triplet: measuring")  # the run is there, its measurement was another
    own, further = results.of("vsepp-triplet")[0].measurements
    assert (own.on.positives, further.on.positives) == ("own", "pairs")
    assert own.values["i2t R@1"] < 100
    assert further.values["i2t R@1"] == further.values["t2i R@1"] == 100
    assert f"--positives pairs:{file}" in further.commands[0]
    # With the options that the judgements have: of one caption per image alone, the own ones are kept.
    file.write_text(
        json.dumps({"i2t": dict(zip(part.image_ids, ([one] for one in part.caption_ids[::5]), strict=True))})
    )
    line = f"study run x --positives pairs:{file} --positives-option originals=true"
    judged = replace(choices, positives=line.partition("--positives ")[2])
    own, kept = run_study(small_study, copied, judged, **TRIPLET).of("vsepp-triplet")[0].measurements
    assert kept.values == own.values
    assert kept.commands[0].endswith(line.partition("run x ")[2])


def test_vsrn_is_trained_on_features_as_they_are_distributed(tmp_path):
    """One command on a folder of them; a verdict needs the paper's test split, training and dataset."""
    tiny = {"regions": 2, "feature_width": 4, "layers": 1}
    values = {"model.width": 8, "model.text.word_width": 4, "stages.0.epochs": 1, "batches.size": 8}
    values |= {f"model.image.{key}": value for key, value in tiny.items()}
    random = np.random.default_rng(0)
    folders = {"f30k_precomp": 1_000, "less/f30k_precomp": 4, "mine_precomp": 4}
    said = {}
    for name, images in folders.items():
        (folder := tmp_path / name).mkdir(parents=True)
        for split, count in {"train": 8, "dev": 4, "test": images}.items():
            np.save(folder / f"{split}_ims.npy", random.random((count, 2, 4), dtype=np.float32))
            lines = [f"a dog of {row} and {number}" for row in range(count) for number in range(5)]
            (folder / f"{split}_caps.txt").write_text("\n".join(lines) + "\n")
        given = " ".join(f"--set {key}={value}" for key, value in values.items())
        setting = "--setting published" if name == "f30k_precomp" else ""
        out = tmp_path / "out" / name / "metric-learning.table-1"
        line = f"study run metric-learning.table-1 --data {folder} --rows vsrn-triplet --seeds 0 -o {out}"
        command(f"{line} --accelerator cpu {setting} {given}")
        (results,) = collect([out])
        comparison = compare(STUDIES.get(results.study), results)
        cells = [cell for block in comparison.blocks for row in block.rows if row.seeds for cell in row.cells]
        said[name] = (comparison.label, {cell.verdict for cell in cells}, results.setting)
        image = Run.open(out / "rows" / "vsrn-triplet" / "seed-0").recipe.model.image
        assert image.normalise_input == (name != "f30k_precomp")  # as the authors' code has it of Flickr30k
    assert [rest for _, *rest in said.values()] == [
        [{"other training"}, "published"],
        [{"other data"}, "paper"],
        [{"other data"}, "data"],
    ]
    names = [label.partition(": on ")[2].partition(":")[0] for label, *_ in said.values()]
    assert names == ["flickr30k", "flickr30k", "mine_precomp"]


# Recipes -----------------------------------------------------------------------------------------------

GLOVE = {"model.text.word_vectors": "glove.npz"}


def planned(study, setting="paper", **choices):
    return plan_of(STUDIES.get(study), Path(), Choices(**{"setting": setting, **choices}), Path())


def of(study, row, setting="paper", **choices):
    """Return the recipe; tests read its optional parts as if they were there."""
    plan = planned(study, setting, **{"regions": "regions.npy", **choices})
    return plan.recipe_of(plan.study.row(row))


def test_every_row_is_a_recipe_in_every_setting():
    """Trained ones: it is of the row, on generated data where it is quick, and says what a user changes."""
    for study in (one for one in STUDIES if one.of == "collections" and not one.several):
        for setting in study.settings:
            chosen = Choices(setting, regions="regions.npy", values=GLOVE)
            plan = plan_of(study, Path(), chosen, Path())
            for row in (*study.rows, *study.bases):
                if row.kind != "recipe" or plan.is_given(row) or plan.why_not(row) is not None:
                    continue
                recipe = plan.recipe_of(row)
                assert recipe.name == f"{study.paper.key}.{row.name}"
                assert (recipe.data.scenes is not None) == (setting == "quick")
                if setting == "quick":  # everything a run keeps: the recipe survives the way through TOML
                    assert Recipe.model_validate(tomllib.loads(recipe.to_toml())) == recipe
                keys = [f"stages.{place}.epochs" for place in range(len(recipe.stages))]
                set_by_hand = replace(plan, choices=replace(chosen, values=dict.fromkeys(keys, 977)))
                assert changed_keys(set_by_hand, row) == tuple(keys)


SCHEDULES = tomllib.loads(Path(__file__).with_name("schedules.toml").read_text(encoding="utf-8"))


def picked(have, said):
    """Return of a recipe what is said of one."""
    if isinstance(said, dict):
        return {key: picked(have[int(key) if key.isdigit() else key], value) for key, value in said.items()}
    return have


def test_the_papers_schedules():
    for row, schedule in SCHEDULES.items():
        assert picked(of(*row.split()).model_dump(mode="json"), schedule) == schedule


def test_the_tables_of_one_paper_share_their_recipes():
    for row in ("vsepp-triplet", "vsepp-triplet-hardest"):
        assert of("metric-learning.table-1", row) == of("metric-learning.table-2", row)
    assert of("ltd.table-1", "ltd-constraint") == of("ltd.figure-2", "ltd-constraint")
    assert of("convse.table-3", "convse++") == of("convse.table-2", "convse++")
    assert of("convse.table-3", "mvn").model.projection is None
    ltd = of("ltd.table-1", "baseline"), of("ltd.table-2", "triplet-ltd-constraint")
    assert (ltd[0].reconstruction, ltd[1].averaging) == (None, None)


def test_what_a_user_sets_reaches_the_rows_that_have_it():
    values = {"batches.size": 32, "reconstruction.beta": 2.0}
    baseline = of("ltd.table-1", "baseline", values=values)
    assert (baseline.reconstruction, baseline.batches.size) == (None, 32)
    assert of("ltd.table-1", "ltd-dual", values=values).reconstruction.beta == 2.0
    # A section that is there to be added is added.
    assert of("metric-learning.table-1", "vsepp-triplet", values={"averaging.share": 0.2}).averaging
    for study, key in (("ltd.table-1", "nonsense"), ("ltd.table-2", "model.text.nonsense")):
        with pytest.raises(RecipeError, match="nonsense"):
            of(study, "baseline", values={key: 1})
    latent = of("ltd.table-1", "ltd-dual", targets="folder").reconstruction.targets
    assert (latent.kind, latent.model) == ("sentence", "folder")
    assert of("ltd.table-1", "ltd-dual", targets="lsa").reconstruction.targets.kind == "lsa"
    assert of("ltd.table-1", "itd-dual", targets="folder") == of("ltd.table-1", "itd-dual")
    assert of("ltd.table-2", "targets-fixed", targets="folder").model.text.targets.model == "folder"
    for study, row, key, value in (
        ("ltd.table-2", "targets-fixed", "model.text.word_vectors", "glove.npz"),
        ("ltd.table-2", "targets-fixed", "model.text.compat", "last-token"),
        ("ltd.table-2", "targets-fixed", "caption_augmentation.unknown", 0),
        ("ltd.table-2", "triplet", "averaging.refresh_batch_norm", False),
        ("metric-learning.table-1", "vsrn-triplet", "model.image.weights", "resnet50.safetensors"),
        ("metric-learning.table-1", "vsepp-triplet", "model.image.compat", "region-axis"),
        ("convse.table-3", "vse++", "model.projection.hidden", 512),
        ("convse.table-3", "mvn", "model.projection.hidden", 512),
    ):
        assert of(study, row, values={key: value}) == of(study, row)


def test_rows_without_what_they_need_are_left_out():
    def why(study, row, setting="paper", **choices):
        plan = planned(study, setting, **choices)
        return plan.why_not(plan.study.row(row)) or ""

    assert "--regions" in why("metric-learning.table-1", "vsrn-triplet")
    assert not why("metric-learning.table-1", "vsrn-triplet", regions="r.npy")
    assert "scenes" in why("metric-learning.table-1", "vsrn-triplet", "quick", regions="r.npy")
    for row in ("baseline", "triplet"):
        assert "word vectors" in why("ltd.table-2", row)
        assert not why("ltd.table-2", row, values=GLOVE)
        assert not why("ltd.table-2", row, "data")
    assert not why("ltd.table-2", "targets-fixed")
    assert of("metric-learning.table-1", "vsrn-triplet").data.options == {"regions": "regions.npy"}
    for study, row, words in (
        ("metric-learning.table-1", "vsepp-triplet", ["weights of resnet50.tv_in1k"]),
        ("metric-learning.table-1", "vsrn-triplet", ["region features"]),
        ("ltd.table-1", "baseline", ["word vectors", "weights of resnet50.tv_in1k"]),
        ("ltd.table-1", "ltd-dual", ["word vectors", "weights of", "--targets MODEL"]),
        ("ltd.table-2", "targets-fixed", ["weights of", "--targets MODEL"]),
        ("ltd.table-3", "vsepp-like", ["word vectors", "weights of resnet152.tv_in1k"]),
    ):
        needs = needs_of(STUDIES.get(study), STUDIES.get(study).row(row)).split("; ")
        assert all(word in need for need, word in zip(needs, words, strict=True)), (study, row)


def test_only_what_is_trained_is_changed():
    """Where something is, or a value that the paper has anyway, makes no other training."""
    for study, row, chosen, changed in [
        ("metric-learning.table-1", "vsepp-triplet", {"model.image.weights": "w.safetensors"}, ()),
        ("svl.table-4.1", "vse-unique", {"shortcuts.digits": "mnist", "model.image.weights": "w"}, ()),
        ("svl.table-4.1", "clip-unique", {"fine_tune": "open_clip:RN50/openai"}, ()),
        ("ltd.table-1", "baseline", {"model.text.word_vectors": "g.npz", "checkpoints.every_steps": 9}, ()),
        ("ltd.table-1", "baseline", {"stages.0.epochs": 30, "reconstruction.beta": 2.0}, ()),
        ("ltd.table-1", "baseline", {"stages.0.epochs": 3, "batches.size": 128}, ("stages.0.epochs",)),
        ("d2s.table-3.1", "d2s-1e-3-c+w", {"sparsify.training.epochs": 200}, ()),
        ("d2s.table-3.6", "hnsw-dense", {"search.items": 9, "search.queries": 2000}, ("search.items",)),
    ]:
        plan = planned(study, regions="r.npy", values=chosen)
        assert changed_keys(plan, plan.study.row(row)) == changed
        lsa = planned(study, targets="lsa", values=chosen)
        assert changed_keys(lsa, lsa.study.row(row)) == tuple(sorted([*changed, "targets"]))
    plan = planned("intent.table-6.1", "data", values={"measure.gap": 20, "measure.jobs": 2})
    assert changed_keys(plan, plan.study.rows[0]) == ("measure.gap",)  # how a log is measured


def test_rows_settings_and_homes_are_found(tmp_path):
    study = STUDIES.get("metric-learning.table-1")
    settings = {None: "quick", "Flickr30k": "paper", "coco": "paper", "flickr8k": "data"}
    assert {name: setting_for(study, name) for name in settings} == settings
    assert setting_for(study, "flickr30k", "data") == "data"
    assert setting_for(STUDIES.get("convse.table-2"), "flickr30k") == "data"  # of COCO only
    with pytest.raises(UnknownNameError, match="setting"):
        setting_for(study, None, "nonsense")
    names = [row.name for row in study.resolve(["2.1", "vsepp-smoothap", "1.1"])]  # or the paper's numbers
    assert (names, len(study.resolve(None))) == (["vsepp-triplet", "vsepp-smoothap"], 8)
    with pytest.raises(UnknownNameError, match=r"1\.9"):
        study.resolve(["1.9"])
    # Tables that share a row share its runs, in folders side by side.
    plan = replace(planned("ltd.figure-2"), folder=tmp_path / "ltd.figure-2")
    home = plan.target(plan.study.row("ltd-constraint"), 3)
    assert home == tmp_path / "ltd.table-1" / "rows" / "ltd-constraint" / "seed-3"
    own = plan.target(plan.study.row("ltd-eta-0.3"))
    assert own == tmp_path / "ltd.figure-2" / "rows" / "ltd-eta-0.3" / "seed-0"
