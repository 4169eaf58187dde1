"""Thesis chapter 5: captions and encoders measured rightly and as published, studies whole, claims by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stressed import Reader, painted
from study_runs import TINY, run_study

from diptych import studies
from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.images import FolderSource
from diptych.data.scenes import read_scenes
from diptych.encoders.encode import encode_collection
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.stress.result import StressResult
from diptych.studies import STUDIES, Choices, Evidence, Figure, Subject
from diptych.studies.brittleness import Clean, Granularity, MeasureOptions, Suite
from diptych.studies.evidence import queries_in, side_by_side
from diptych.studies.page import study_page
from diptych.studies.papers.brittleness import chance_similarity, granularity
from diptych.studies.published import Measured, same_evaluation
from diptych.studies.runner import plan_of
from diptych.studies.sources import GivenEncoder
from diptych.studies.study import PUBLISHED

TABLES = {n: STUDIES.get(f"brittleness.table-5.{n}") for n in (1, 2, 3, 4)}
LISTS = TABLES[3].claims[0].lists
THIRTEEN, SHUFFLES = LISTS["perturbations"], LISTS["shuffles"]
KINDS, MODELS = [*SHUFFLES, *LISTS["means"]], [model["key"] for model in LISTS["models"]]
FOLDER = "full, text queries among all pictures of the folder"


def row_of(folder, parts="letters"):
    """Return a row of an encoder that sees letters and their order, or a bag of words."""
    row = GivenEncoder(folder / "row", parts)
    vars(row)["encoder"] = Reader(parts, noise=1e-9 if parts == "words" else 0.0)
    return row


@pytest.fixture(scope="module")
def scenes(scenes_folder):
    return replace(read_scenes(scenes_folder), name="scenes")


def measured(measure, row, collection, **values):
    (found,) = measure(Subject(row, collection, None, measuring=values))
    return found


def test_the_clean_table_is_what_evaluate_gives(scenes, tmp_path):
    found = measured(Clean(), row_of(tmp_path), scenes)
    encoded = encode_collection(Reader("letters"), scenes.split("test"), tmp_path / "by hand", "test")
    names = ("R@1", "R@5", "R@10", "DCG_CM@10")
    by_hand = evaluate_encoded(encoded, None, names, samples=0)
    assert set(found.values) == {column.name for column in TABLES[2].columns}  # none as published unasked
    for way, images in (("i2t", np.arange(16)), ("t2i", np.repeat(np.arange(16), 5))):
        right = [by_hand.value(name, way) * (100 if name[0] == "R" else 1) for name in names]
        for name, value in zip((*names, "rsum"), (*right, sum(right[:3])), strict=True):
            ((values, cluster),) = queries_in(tmp_path / "row" / found.kept, f"{way} {name}")
            assert found.values[f"{way} {name}"] == pytest.approx(value)
            assert values.mean() == pytest.approx(value)
            assert cluster.tolist() == images.tolist()
    assert found.on == Measured("scenes", "test", 16, 80, "full", centric="scene")


def test_the_published_way_is_counted_beside_the_right_one(scenes, tmp_path, monkeypatch):
    words, part = Reader("words"), scenes.split("test")
    monkeypatch.setattr("diptych.studies.brittleness.DualEncoder.load", lambda source: words)
    found = measured(Clean(), row_of(tmp_path), scenes, compat="published", relevance="words").values
    own = part.caption_image == np.arange(part.n_images)[:, None]
    scores, gains = (
        np.asarray(of.images.rows) @ np.asarray(of.texts.rows).T
        for one in (Reader("letters"), words)
        for of in [encode_collection(one, part, tmp_path / one.parts, "test")]
    )
    first = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    hits = np.take_along_axis(own, first, axis=1)
    capped = {k: 100 * hits[:, :k].sum(axis=1).mean() / min(k, 5) for k in (1, 5, 10)}
    printed = [found[f"i2t {name}{PUBLISHED}"] for name in ("R@1", "R@5", "R@10", "rsum")]
    assert printed == pytest.approx([capped[5], capped[10], capped[1], sum(capped.values())])
    assert found["i2t R@1"] == pytest.approx(capped[1])  # of one, any and capped are the same
    gained = np.where(hits, 1.0, np.take_along_axis(np.round(gains, 4), first, axis=1))
    by_words = (gained / np.log2(np.arange(2, 12))).sum(axis=1).mean()
    assert found[f"i2t DCG_CM@10{PUBLISHED}"] == pytest.approx(by_words, abs=2e-3)
    assert found["i2t DCG_CM@10"] != pytest.approx(by_words, abs=1e-2)


def test_captions_ask_for_the_whole_folder(tmp_path):
    """Verdicts are of the paper's own folders, which have as many pictures as the paper's."""
    names = [f"p{row}.jpg" for row in range(10)]
    for name in (*names, "p10.png"):
        (tmp_path / name).touch()
    files = replace(painted(), source=FolderSource(tmp_path, names[:8]))
    printed = next(on for on in TABLES[3].published[0].evaluated_on if on.dataset == "flickr30k")
    none, other = (("painted", "none"), ("coco-FG", "published"))
    endings = {none: ", captions perturbed with compat none", other: ", of which there are 10"}
    for one in (("painted", "published"), none, other):
        chosen, ending = MeasureOptions(gallery="folder", compat=one[1]), endings.get(one, "")
        part = chosen.part(replace(files, name=one[0]))
        assert part.encoded.image_ids == [*(f"p{row}" for row in range(6)), *names[6:]]
        on = chosen.on(part, perturbed=True)
        assert on.protocol == FOLDER + ending
        theirs = replace(on, dataset="flickr30k", images=1_000, captions=5_000)
        assert bool(same_evaluation(theirs, printed)) == bool(ending)


def test_one_run_of_the_suite_is_both_tables(scenes, tmp_path):
    row = row_of(tmp_path)
    found = measured(Suite("rsum"), row, scenes, seeds=2)
    asked, values, folder = row.encoder.texts.total(), found.values, tmp_path / "row" / found.kept
    similar = measured(Suite("jaccard"), row, scenes, seeds=2)
    assert row.encoder.texts.total() == asked  # nothing is encoded once more
    assert similar.kept == found.kept
    assert "seeds 0, 1;" in found.protocol
    result = StressResult.open(folder)
    assert values["typos"] == pytest.approx(np.mean([values[name] for name in THIRTEEN[-4:]]))
    assert abs(values["character-swap"] - result.row("character-swap").drop("rsum").perturbed) < 1e-11
    assert similar.values == {name: getattr(result.agreement["t2i"], name) for name in LISTS["groups"]}
    kept = {name: queries_in(folder, name)[0] for name in ("none", *KINDS, *THIRTEEN)}
    for name, (each, cluster) in kept.items():
        assert (each.mean(), [*np.bincount(cluster)]) == (pytest.approx(values[name]), [5] * 16)
    moved = kept["distraction-true"][0] != kept["none"][0]  # it is the same with every seed
    assert values["distraction-true moved"] == pytest.approx(100 * np.mean(moved))

    one = Evidence({"r": {name: Figure(value) for name, value in values.items()}}, kept={"r": [folder]})
    whole = replace(side_by_side({"a": one, "b": one}, {}), fixed=frozenset(["r"]))
    apart = (kept["none"][0] - kept["typos"][0]).reshape(16, 5).mean(axis=1)
    error = whole.paired_error(("r", "a none"), ("r", "a typos"))
    assert getattr(error, "variance", None) == pytest.approx(np.var(apart, ddof=1) / 16)
    assert whole.paired_error(("r", "a none"), ("r", "b typos")) is None  # of other captions


def test_a_bag_of_words_is_indifferent_to_shuffles_alone(scenes, tmp_path):
    row = row_of(tmp_path, "words")
    found = measured(Suite("rsum"), row, scenes, seeds=1).values
    for name in SHUFFLES:
        assert (found[f"{name} moved"], found[name]) == (0, found["none"])
        assert found[f"{name} changed"] > 50
    assert found["character-swap moved"] > 0
    assert "seeds 42;" in measured(Suite("rsum"), row, scenes, compat="published").protocol  # beside it
    # Without a WordNet there are no synonyms: no mean of them, and a reason.
    without = measured(Suite("rsum"), row, painted(), language="none", seeds=1)
    assert without.values.keys() & {"typos", "synonyms"} == {"typos"}
    assert "left out synonym-noun: " in without.protocol


def test_what_cannot_be_measured_is_refused():
    for measure, values, message in [
        (Clean(), {"gallery": "all"}, "measure: gallery: .*'split' or 'folder'.*all"),
        (Suite("rsum"), {"seeds": 0}, "measure: seeds: "),
        (Clean(), {"relevance": "no/such/encoder"}, "no/such/encoder"),
        (Suite("rsum"), {"language": "latin"}, "unknown language 'latin'"),
        (Clean(), {"split": "dev"}, "unknown split of painted 'dev'"),
        (Clean(), {"gallery": "folder"}, "images of painted are not.*measure.gallery=split"),
        (Granularity(), {"language": "none"}, "needs a part-of-speech tagger"),
    ]:
        measure.check({"language": "scenes"}, {"painted": painted()})
        with pytest.raises((UsageError, UnknownNameError), match=message):
            measure.check({"language": "scenes", **values}, {"painted": painted()})


def test_the_papers_settings_measure_as_published(tmp_path):
    sections = (("coco", {"scenes": {"n_train": 0, "n_val": 0, "n_test": 2, "size": 32}}),)
    own = {"measure.compat": "none"}
    for setting, of, compat in (("published", {}, "published"), ("paper", own, "none"), ("data", {}, None)):
        given = Choices(setting=setting, collections=sections, values=of)
        found = plan_of(TABLES[3], tmp_path, given, tmp_path).choices.values
        assert found.get("measure.compat") == compat
        assert found.get("measure.gallery") == (compat and "folder")


def test_captions_are_compared_with_finer_ones(tmp_path):
    coarse = {"n_train": 0, "n_val": 0, "n_test": 24, "size": 32}
    sections = (("x", {"scenes": coarse}), ("x-fg", {"scenes": {**coarse, "finer": 2}}))
    given = Choices(setting="quick", collections=sections)
    told = []
    run_study(TABLES[1], tmp_path / "s", given)
    found = studies.compare(TABLES[1], run_study(TABLES[1], tmp_path / "s", given, tell=told.append))
    assert not told  # what is there is not measured again
    of = {entry.dataset: entry.measurements[0].values for entry in found.results.entries}
    assert of["x-fg"]["words"] > of["x"]["words"] + 3
    assert of["x"][f"articles{PUBLISHED}"] > of["x"]["articles"]  # not every DT is one
    status = {claim.name: judged.status for claim, judged, _ in found.claims}
    assert (status["finer"], status["phrases"], status["adjectives"]) == ("holds", "not tested", "not tested")
    page = study_page(found).html()
    for text in ("x-fg less x", "paired: 24 images", "1.56", "words are what stands between blanks"):
        assert text in page
    # The printed gain stands beside that of the same collections alone.
    for names, expected in ((("coco", "coco-fg"), ("+38.2", "+27.6")), (("shop", "shop-fg"), ("", ""))):
        own = zip(names, of, strict=True)
        kept = {f"{name} captions": found.results.evidence().kept[f"{there} captions"] for name, there in own}
        table = granularity(TABLES[1], Evidence(kept=kept, centric=dict.fromkeys(names, ""))).tables[0]
        assert (table.columns[3], table.texts[0][3], table.texts[1][3]) == ("printed %", *expected)
    with pytest.raises(UsageError, match=r"trains nothing.*measure\.split"):
        run_study(TABLES[1], tmp_path / "t", replace(given, values={"model.width": 3}))
    with pytest.raises(UnknownNameError, match="key of measure"):
        run_study(TABLES[1], tmp_path / "t", replace(given, values={"measure.spilt": "val"}))


def test_the_suite_checks_itself_and_shows_drops(scenes_folder, tmp_path):
    sections, lines = (("small", {"path": str(scenes_folder)}),), []
    values = {**TINY, "data.scenes.n_train": 64, "model.text.word_width": 16, "measure.seeds": 1}
    given = Choices(setting="quick", collections=sections, values=values)
    found, similar = (
        studies.compare(one, run_study(one, tmp_path / one.name, given, tell=lines.append))
        for one in (TABLES[3], TABLES[4])
    )
    assert sum(line.endswith(": training") for line in lines) == 2  # each row once for both
    claims = {claim.name: judgement for claim, judgement, _ in found.claims}
    assert (claims["the control"].status, claims["Flickr30k"].status) == ("holds", "not tested")
    assert len(claims["the control"].findings) == 5
    (table,), (here, printed) = found.further.tables, found.further.charts
    assert table.columns[2:] == ("encoder, small", "bag, small")
    assert [row[0] for row in table.texts] == [row[0].text for row in here.rows] == THIRTEEN
    assert table.texts[1][3] == "0"
    assert printed.groups[1] == ("ALIGN", 4)
    change = printed.rows[1][printed.columns.index("coco")]
    assert (change.text, round(change.shade, 3)) == ("-26.1", 0.607)  # 116.09 and 85.78; of 60 per cent, bent
    assert len(similar.further.tables[0].rows) == 2 * 3


def test_chance_by_hand():
    assert chance_similarity([0.8, 0.8]) == pytest.approx(0.64 / 0.96)  # the two thirds that the note names
    assert chance_similarity([1.0, 0.5, 0.5]) == pytest.approx((0.5 + 0.5 + 1 / 3) / 3)  # all pairs alike
    assert chance_similarity([0.0, 0.0]) is chance_similarity([0.3]) is None


# Claims by hand: columns of collections, by row ------------------------------------------------------


def sums(name, clean, of, **others):
    given = {"none": clean, **of, **others}
    return {f"{name} {kind.replace('_', '-')}": value for kind, value in given.items()}


def gains(coarse, i2t, t2i):
    fine = {f"{coarse}-fg i2t R@1": 10 * (1 + i2t), f"{coarse}-fg t2i R@1": 10 * (1 + t2i)}
    return {f"{coarse} i2t R@1": 10.0, f"{coarse} t2i R@1": 10.0, **fine}


SAME = dict.fromkeys(KINDS, 90.0)
RAISED = {"clip": gains("x", 0.2, 0.5), "align": gains("x", -0.1, 0.1), "bag": gains("x", 9, -0.9)}
HURT = {
    "clip": sums("x", 100, SAME, shuffle_all_words=50, synonyms=99),
    "align": sums("x", 100, SAME, shuffle_all_words=80, typos=70, synonyms=95, distraction=97),
    "bag": sums("x", 100, SAME, typos=1),  # takes no part
}
FEWER = {**dict.fromkeys(THIRTEEN, 80.0), **dict.fromkeys(SHUFFLES, 99.0)}
SIMILAR = {"x decreased": 0.2, "x increased": 0.1, "x unchanged": 0.7}
ALL = dict.fromkeys(THIRTEEN, 90.0)
OF_13, FLICKR30K = ({"clip": sums(x, 100, ALL) | sums(f"{x}-fg", 100, FEWER)} for x in ("x", "flickr30k"))
COCO = gains("coco", 0.06, 0.16)  # with Flickr30k's 6.5 % from pictures, 16.3 % or 17 % from text
NAMED, OTHER = (dict.fromkeys(MODELS, COCO | gains("flickr30k", 0.07, by)) for by in (0.166, 0.18))


def test_claims_by_hand():
    for n, claim, rows, status, figure in [
        (2, "finer captions", RAISED, "holds", "3 of 4"),
        (2, "finer captions", {"clip": gains("x", -0.1, 0.1)}, "fails", "1 of 2"),  # no more than half
        (2, "from text", RAISED, "holds", "on average: 0.25"),  # 30 % less 5 %
        (2, "from text", {"clip": gains("x", 0.6, 0.5)}, "fails", ""),
        (2, "named", NAMED, "holds", ""),
        (2, "named", OTHER, "fails", ""),
        (3, "shuffle all words", HURT, "holds", ""),  # 65 and 80 on average
        (3, "shuffle all words, everywhere", HURT, "fails", "shuffle-all-words] < [align: x typos]"),
        (3, "lexical variation", HURT, "holds", ""),  # 97 and 93.5
        (3, "lexical variation, everywhere", HURT, "fails", "[align: x distraction] < [align: x synonyms]"),
        (3, "drops", {"clip": sums("x", 100, SAME, typos=110)}, "holds", "7 of 8"),
        (3, "drops", {"clip": sums("x", 80, SAME, typos=70)}, "fails", "1 of 8"),
        (3, "word order", {"clip": sums("x", 100, SAME, shuffle_trigrams=110)}, "fails", "4 of 5"),
        (3, "finer captions", OF_13, "fails", "5 of 13"),
        (3, "finer captions", FLICKR30K, "not tested", ""),
        (3, "finer captions", {"clip": sums("x", 100, SAME) | sums("x-fg", 50, SAME)}, "holds", "8 of 8"),
        (3, "Flickr30k", FLICKR30K, "holds", "5 of 13"),
        (4, "unchanged", {"clip": SIMILAR}, "holds", ""),
        (4, "increased", {"clip": SIMILAR}, "holds", ""),
        (4, "unchanged", {"clip": {**SIMILAR, "x decreased": 0.8}}, "fails", ""),
    ]:
        names = dict.fromkeys(name.partition(" ")[0] for of in rows.values() for name in of)
        figures = {row: {name: Figure(value) for name, value in of.items()} for row, of in rows.items()}
        one = next(one for one in TABLES[n].claims if one.name == claim)
        found = studies.judge(one, Evidence(figures, centric=dict.fromkeys(names, ""), exact=True))
        assert (found.status, figure in found.figure) == (status, True), found.figure
