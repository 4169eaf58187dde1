"""Running a study: the plan, what is used again, what is refused, what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_runs import run_study

from diptych.core.errors import Interrupted, StorageError, UsageError
from diptych.core.locking import exclusive_folder
from diptych.studies.making import changed_keys
from diptych.studies.results import Results, StudyFolder, collect, entries_of
from diptych.studies.rows import Choices, recipe_of
from diptych.studies.runner import plan_of
from diptych.studies.study import PUBLISHED, STUDIES, Study


def test_a_base_is_planned_once_and_first(small_study: Study) -> None:
    plan = plan_of(small_study, [small_study.row("onwards")], [1, 2], "quick")
    assert [(job.row.name, job.seed, job.shown) for job in plan] == [
        ("vsepp-triplet", 0, False),
        ("onwards", 1, True),
        ("onwards", 2, True),
    ]
    assert [job.place for job in plan] == [
        "row 1 of 2",
        "row 2 of 2, seed 1 of 2",
        "row 2 of 2, seed 2 of 2",
    ]
    both = plan_of(small_study, [small_study.row("onwards"), small_study.row("vsepp-triplet")], [0], "quick")
    assert [(job.row.name, job.shown) for job in both] == [("vsepp-triplet", True), ("onwards", True)]


def test_published_plans_train_what_the_paper_trained() -> None:
    study = STUDIES.get("convse.table-1")
    plan = plan_of(study, study.resolve(None), study.settings["paper"].seeds, "paper")
    assert [(job.row.name, job.seed) for job in plan] == [
        ("vse++", 0),
        *(("convse", seed) for seed in range(5)),
        *(("convse++", seed) for seed in range(5)),
    ]
    table_1 = STUDIES.get("metric-learning.table-1")
    assert len(plan_of(table_1, table_1.resolve(None), table_1.settings["paper"].seeds, "paper")) == 8 * 5


def test_other_targets_are_a_change_where_there_are_targets() -> None:
    study = STUDIES.get("ltd.table-2")

    def changes(row: str, **choices: object) -> tuple[str, ...]:
        chosen = Choices(**choices)  # type: ignore[arg-type]
        return changed_keys(chosen, recipe_of(study, study.row(row), "paper", chosen))

    assert changes("ltd-constraint", targets="lsa") == ("reconstruction.targets.kind",)
    assert changes("targets-fixed", targets="lsa") == ("model.text.targets.kind",)
    assert changes("baseline", targets="lsa", values={"batches.size": 64}) == ("batches.size",)
    assert changes("ltd-constraint", targets="models/minilm") == ()  # the same encoder, somewhere else


def test_an_encoder_is_given_to_what_goes_on_from_one() -> None:
    study, chosen = STUDIES.get("svl.table-4.1"), Choices(values={"fine_tune": "clip"})
    of = {
        row: changed_keys(chosen, recipe_of(study, study.row(row), "paper", chosen))
        for row in ("clip-none", "vse-none")
    }
    assert of == {"clip-none": ("fine_tune",), "vse-none": ()}


def test_a_study_is_run_kept_and_used_again(small_study: Study, choices: Choices, tmp_path: Path) -> None:
    told: list[str] = []
    results = run_study(
        small_study,
        tmp_path / "out",
        choices,
        rows=["onwards", "1.1"],
        seeds=[0, 1],
        accelerator="cpu",
        command="diptych study run made-up.table-1",
        tell=told.append,
    )
    assert [(entry.row, entry.seed) for entry in results.entries] == [
        ("vsepp-triplet", 0),
        ("vsepp-triplet", 1),
        ("onwards", 0),
        ("onwards", 1),
    ]
    about = StudyFolder.open(tmp_path / "out" / "study.json")
    assert about.study == "made-up.table-1"
    assert about.command == "diptych study run made-up.table-1"
    assert told[0] == "row 1 of 2, seed 1 of 2: Triplet: training"
    # The third row has gone on from the first row's weights.
    folder = tmp_path / "out" / "rows"
    recipe = (folder / "onwards" / "seed-1" / "recipe.toml").read_text()
    assert f'warm_start = "{folder / "vsepp-triplet" / "seed-0"}"' in recipe
    entry = results.of("vsepp-triplet")[0]
    measured = entry.measured()
    assert measured is not None
    assert (measured.on.dataset, measured.on.split, measured.on.images) == ("scenes", "test", 16)
    assert set(measured.values) >= {
        "i2t R@1",
        "t2i R@10",
        "rsum",
        "i2t average recall",
        "i2t mAP@5" + PUBLISHED,
    }
    recalls = [measured.values[f"{d} R@{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10)]
    assert measured.values["rsum"] == pytest.approx(sum(recalls))
    assert measured.values["i2t average recall"] == pytest.approx(sum(recalls[:3]) / 3)
    assert measured.trajectory is not None
    assert len(measured.trajectory.steps) == 15  # 240 captions in batches of 16
    assert len(measured.trajectory.rsum) == 1
    assert "scenes" in measured.protocol
    assert "--measure mAP-hits@5" in measured.commands[0]
    assert entry.cpu_seconds > 0
    assert "batches.size" in entry.changed

    told.clear()
    again = run_study(small_study, tmp_path / "out", choices, rows=["1.1"], seeds=[0], tell=told.append)
    assert told == ["row 1 of 1: Triplet: there already"]
    assert again == results  # what earlier calls gave is there too
    assert again.evidence().figures["onwards"]["rsum"].seeds == 2


def test_the_measured_number_is_that_of_evaluate(
    small_study: Study, choices: Choices, tmp_path: Path
) -> None:
    """Features cached for the whole study give the rows that the encoder gives for the pictures."""
    from diptych.data import read_collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.evaluation.evaluate_encoder import evaluate_encoder

    results = run_study(small_study, tmp_path / "out", choices, rows=["1.3"], seeds=[0], accelerator="cpu")
    measured = results.entries[0].measured()
    assert measured is not None
    assert choices.data is not None
    part = read_collection(choices.data["path"]).split("test")
    encoder = DualEncoder.load(tmp_path / "out" / "rows" / "vsepp-nt-xent" / "seed-0" / "best")
    by_hand = evaluate_encoder(encoder, part, tmp_path / "by hand", samples=0)
    for name in ("R@1", "R@5", "R@10"):
        for direction in ("i2t", "t2i"):
            assert measured.values[f"{direction} {name}"] == pytest.approx(
                100 * by_hand.value(name, direction)
            )


def test_interrupted_it_goes_on_to_the_same_numbers(
    small_study: Study, choices: Choices, tmp_path: Path
) -> None:
    unbroken = run_study(small_study, tmp_path / "a", choices, rows=["1.1"], seeds=[0], accelerator="cpu")
    steps = iter([False] * 5 + [True] * 100)
    with pytest.raises(Interrupted):
        run_study(
            small_study,
            tmp_path / "b",
            choices,
            rows=["1.1"],
            seeds=[0],
            accelerator="cpu",
            should_stop=lambda: next(steps),
        )
    assert not list(entries_of(small_study, tmp_path / "b"))
    told: list[str] = []
    resumed = run_study(
        small_study, tmp_path / "b", choices, rows=["1.1"], seeds=[0], accelerator="cpu", tell=told.append
    )
    assert told[0] == "row 1 of 1: Triplet: goes on"
    assert resumed.values("vsepp-triplet", "rsum") == unbroken.values("vsepp-triplet", "rsum")


def test_two_studies_do_not_train_one_run(small_study: Study, choices: Choices, tmp_path: Path) -> None:
    """The folder of a run that another process trains is refused; one that is finished is free to use."""
    folder = tmp_path / "rows" / "vsepp-triplet" / "seed-0"
    some: dict[str, Any] = {"rows": ["1.1"], "seeds": [0], "accelerator": "cpu"}
    held: list[bool] = []

    def should_stop() -> bool:
        with pytest.raises(StorageError), exclusive_folder(folder):
            pass
        return held.append(True) or True  # type: ignore[func-returns-value]

    with pytest.raises(Interrupted):
        run_study(small_study, tmp_path, choices, should_stop=should_stop, **some)
    assert held
    with exclusive_folder(folder), pytest.raises(StorageError, match="another process is working in"):
        run_study(small_study, tmp_path, choices, **some)
    finished = run_study(small_study, tmp_path, choices, **some)
    with exclusive_folder(folder):
        assert run_study(small_study, tmp_path, choices, **some) == finished


def test_nothing_is_overwritten(
    small_study: Study, choices: Choices, tmp_path: Path, scenes_folder: Path
) -> None:
    folder = tmp_path / "out"
    run_study(small_study, folder, choices, rows=["1.1"], seeds=[0], accelerator="cpu")
    wider = replace(choices, values={**choices.values, "model.width": 32})
    with pytest.raises(UsageError, match="was trained with model") as caught:
        run_study(small_study, folder, wider, rows=["1.1"], seeds=[0])
    assert caught.value.fix == "choose another folder with --out"
    # A run in the home of another study: another folder beside it would have the same home.
    rows = tuple(replace(row, home=folder.name) for row in small_study.rows)
    guest = replace(small_study, name="made-up.table-2", rows=rows)
    with pytest.raises(UsageError, match="was trained with model") as caught:
        run_study(guest, tmp_path / "guest", wider, rows=["1.1"], seeds=[0])
    assert (
        caught.value.fix == f"its runs are in {folder}: choose a folder in another parent folder with --out"
    )
    with pytest.raises(UsageError, match="holds study 'made-up.table-1'"):
        run_study(replace(small_study, name="made-up.table-2"), folder, choices, rows=["1.1"], seeds=[0])
    from diptych.data.scenes import make_scenes

    other = make_scenes(tmp_path / "other", 48, 16, 16, size=32, seed=1, workers=1)
    with pytest.raises(UsageError, match="was trained on captions"):
        run_study(small_study, folder, replace(choices, data={"path": str(other)}), rows=["1.1"], seeds=[0])


def test_a_study_without_a_row_that_can_run(small_study: Study, choices: Choices, tmp_path: Path) -> None:
    setting = replace(small_study.settings["quick"], left_out={"vsepp-triplet": "it is Sunday"})
    sunday = replace(small_study, settings={"quick": setting})
    with pytest.raises(UsageError, match="vsepp-triplet it is Sunday"):
        run_study(sunday, tmp_path / "out", choices, rows=["1.1"])
    assert not (tmp_path / "out").exists()


def test_results_are_found_again(
    small_study: Study, choices: Choices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    results = run_study(small_study, folder, choices, rows=["1.1", "1.3"], seeds=[0, 1], accelerator="cpu")
    runs = sorted((folder / "rows").glob("*/seed-*"))
    assert len(runs) == 4
    (found,) = collect(runs)
    assert sorted(found.entries, key=lambda e: (e.row, e.seed)) == sorted(
        results.entries, key=lambda e: (e.row, e.seed)
    )
    monkeypatch.setattr(STUDIES, "get", lambda name: {"made-up.table-1": small_study}[name])
    (of_folder,) = collect([folder])
    assert of_folder == results
    with pytest.raises(UsageError, match="holds nothing that a study has measured"):
        collect([tmp_path])


def test_entries_of_different_data_do_not_stand_side_by_side(
    small_study: Study, choices: Choices, tmp_path: Path
) -> None:
    results = run_study(small_study, tmp_path / "out", choices, rows=["1.1"], seeds=[0], accelerator="cpu")
    other = replace(results.entries[0], seed=1, data="flickr8k")
    with pytest.raises(UsageError, match="differ"):
        Results("made-up.table-1", (results.entries[0], other))


def test_further_judgements_are_measured_beside_the_own_ones(
    small_study: Study, choices: Choices, tmp_path: Path
) -> None:
    from diptych.data import read_collection

    assert choices.data is not None
    part = read_collection(choices.data["path"]).split("test")
    # Every caption is relevant to every image: then the first place is always right.
    everything = {"i2t": {image: list(part.caption_ids) for image in part.image_ids}}
    file = tmp_path / "all.json"
    file.write_text(json.dumps(everything))
    out = tmp_path / "out"
    run_study(small_study, out, choices, rows=["1.1"], seeds=[0], accelerator="cpu")
    told: list[str] = []
    judged = replace(choices, positives=f"pairs:{file}")
    results = run_study(small_study, out, judged, rows=["1.1"], seeds=[0], tell=told.append)
    assert told[-1].endswith("Triplet: measuring")  # the run is there, its measurement was another
    own, further = results.entries[0].measurements
    assert (own.on.positives, further.on.positives) == ("own", "pairs")
    assert own.values["i2t R@1"] < 100
    assert further.values["i2t R@1"] == further.values["t2i R@1"] == 100
    assert f"--positives pairs:{file}" in further.commands[0]
    assert results.values("vsepp-triplet", "i2t R@1", "pairs") == [100]
