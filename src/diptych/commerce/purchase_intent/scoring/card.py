"""The model card of a scorer: what it predicts, from what, how well, and where it must not be trusted.

Source of the form: Mitchell et al., Model cards for model reporting, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.commerce.purchase_intent.evaluation.shown import left_out_lines, step_text
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.scoring.cell import CALIBRATIONS, Cell
from diptych.commerce.purchase_intent.scoring.shown import measured_table
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import number
from diptych.core.table import Table


def measured_section(about: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    """Return the measures of every model on the last part, and notes about them."""
    options = about["options"]
    resampled = f"{100 * options['confidence']:g} % intervals of {options['samples']:,} resamples of persons"
    rows = []
    for cell in cells:
        own = {"setting": cell.setting, "step": cell.step, "threshold": cell.threshold}
        rows.append({**cell.about, **own, "measures": cell.about["holdout"]})
    caption = "On the last part, of which the model has seen nothing"
    found = measured_table(f"{caption}; {resampled}" if options["samples"] else caption, rows)
    notes = [
        f"- {cell.setting}, step {cell.step}: {plain(note)}" for cell in cells for note in cell.about["notes"]
    ]
    notes += [f"- {line}" for line in left_out_lines(about["not_trained"], "not trained")]
    return "\n".join([found.markdown(), *notes]).rstrip()


def reliability_section(cells: Sequence[Cell]) -> str:
    """Return probabilities and shares of the last step of every setting."""
    rows = [
        (cell.setting, step_text(cell.step), f"{row['low']:.3f} to {row['high']:.3f}", number(row["n"]),
         number(row["mean_score"], 4), number(row["share"], 4))
        for cell in {cell.setting: cell for cell in cells}.values()
        for row in (cell.about["holdout"] or {}).get("reliability", ())
    ]  # fmt: skip
    if not rows:
        return "Not measured: the last part lacks one of the classes."
    caption = "Of sessions with these probabilities so many bought, on the last part; all steps are in `scorer.json`"
    return (
        Table.of(caption, "", ("setting", "step", "p", "sessions", "mean p", "bought"), rows)
        .markdown()
        .rstrip()
    )


def plain(text: str) -> str:
    """A text from elsewhere, harmless in Markdown and in a table."""
    line = " ".join(str(text).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in line)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_REMEMBERING = ("k-nearest", "svm", "nystroem-svm")


def model_card(about: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    """Markdown."""
    parts = [
        f"# Purchase intent: {plain(about['name'])}",
        _predicts(about),
        "## Data",
        _data(about),
        "## Features",
        _features(about, cells),
        "## Model",
        _model(about),
        "## Measured",
        measured_section(about, cells),
        "## Reliability",
        reliability_section(cells),
        "## Reasons",
        "Each score names the features that move it most: the effect of a feature is the calibrated log-odds of the "
        "session, less their mean with the feature's values replaced by those of "
        f"{about['options']['background']} training sessions (ours; an account of the model, not of causes). These "
        "background rows are feature values and hold no identifiers.",
        "## Limits",
        _limits(about),
        "## Leak audit",
        _audit(about["audit"]),
        "## Use",
        _use(about),
    ]
    return "\n\n".join(parts) + "\n"


def _predicts(about: Mapping[str, Any]) -> str:
    if about["kind"] == "whole":
        return (
            "The probability that a session ended in a purchase, from columns that are known when it is over."
        )
    least = about["session_options"]["pages"] + BUFFER
    return (
        "The probability that a running session ends in a purchase, after each of its first pages; one model for every "
        "setting and step. It holds **among sessions that go on to at least "
        f"{least} pages and buy nothing before {BUFFER} more pages are open** (thesis section 6.5.1): those are what "
        "it was trained on, and their base rate is not that of all visits."
    )


def _data(about: Mapping[str, Any]) -> str:
    counts, slices = about["counts"], about["slices"]
    sizes, rates = slices["sizes"], slices["rates"]
    lines = [
        f"- {plain(about['line'])}",
        f"- days: {about['days']}" + (f"; hours and week days of {about['zone']}" if about["zone"] else ""),
        f"- {counts['sessions']:,} sessions, of which {counts['too_short']:,} are too short to be in the population",
    ]
    if about["session_options"]:
        session = about["session_options"]
        what = (
            "as the log gives them"
            if session["by"] == "given"
            else f"of a {session['by']}, ended by more than {session['gap_minutes']:g} minutes without an event"
        )
        lines.append(f"- sessions are {what}")
    for left in about["left_out"]:
        lines.append(f"- left out: the column {plain(left['column'])}: {plain(left['why'])}")
    for name in about["kept_leaking"]:
        lines.append(f"- **the column {plain(name)} is in it, although it knows the outcome**")
    lines += [
        f"- parts: {slices['note']}; "
        + ", ".join(
            f"{name} {sizes[name]:,}" + (f" ({rates[name]:.1%} bought)" if rates[name] is not None else "")
            for name in ("fit", "calibration", "holdout")
        )
        + f"; {slices['left_out']:,} sessions run across an end and are in none",
        f"- fingerprint of the features: `{about['fingerprint']}`",
    ]
    return "\n".join(lines)


def _features(about: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    in_settings: dict[str, dict[str, None]] = {}
    declared = {}
    for cell in cells:
        for feature in cell.features.features:
            declared[feature.name] = feature
            in_settings.setdefault(feature.name, {})[cell.setting] = None
    rows = [
        (
            plain(feature.label),
            "while it runs" if feature.dynamic else "at its start",
            ", ".join(in_settings[feature.name]),
            plain(feature.description),
        )
        for feature in declared.values()
    ]
    which = (
        "" if about["kind"] == "whole" else f"The {about['options']['feature_set']} set of thesis Table 6.7. "
    )
    return (
        f"{which}Definitions that the thesis does not give say that they are ours.\n\n"
        f"{table(('feature', 'known', 'settings', 'what it is'), rows)}"
    )


def _model(about: Mapping[str, Any]) -> str:
    options = about["options"]
    model = MODELS.get(options["model"])
    weighing = {
        "class_weight": "classes weigh the same while it is fitted (class weights)",
        "sample_weight": "classes weigh the same while it is fitted (sample weights)",
        "none": "classes are not weighed",
    }[about["weighting"]]
    return "\n".join(
        (
            f"- {model.label}: {model.description}; {weighing}; seed {options['seed']}",
            f"- calibration: {options['calibrate']}, {CALIBRATIONS[options['calibrate']]}, fitted on the second part",
            "- threshold: the probability with the best F1 on the second part",
            "- it is not fitted again on the last part: what was measured is what is used",
        )
    )


def _limits(about: Mapping[str, Any]) -> str:
    lines = [
        "- One shop, some days: other seasons, offers and pages change what behaviour means. Watch the base rate and "
        "the reliability, and train again when they move.",
        "- A probability says what such sessions did, not what would change them.",
        "- Nobody should be refused or charged differently by it.",
    ]
    if about["kind"] != "whole":
        lines += [
            "- A visitor is a cookie or an account: who clears cookies, or shares a device, is somebody else to it.",
            "- History begins with the log: orders and sessions before it are not counted, so that early sessions look "
            "like those of new customers.",
            "- Sessions that stop before the shortest length of the population were never seen in training.",
            "- A thesis's definition of features is followed where it gives one; the rest is ours.",
        ]
    if about["history"]:
        lines.append(
            f"- **The folder holds the history of {about['history']:,} visitors by their identifiers: personal data.**"
        )
    else:
        lines.append("- No identifiers of visitors, and no histories, are in this folder.")
    if about["options"]["model"] in _REMEMBERING:
        lines.append("- The model itself consists of feature values of training sessions.")
    return "\n".join(lines)


def _audit(audit: Mapping[str, Any] | None) -> str:
    if audit is None:
        return "Not run with this scorer: `diptych intent audit FEATURES --out AUDIT`, then train with `--audit AUDIT`."
    alarms = [finding for finding in audit["findings"] if finding["alarm"]]
    lines = [
        f"{len(audit['findings'])} findings, {len(alarms)} alarms (checks: {', '.join(audit['checks'])})."
    ]
    lines += [f"- **{one['check']} {plain(one['where'])}**: {plain(one['text'])}" for one in alarms]
    return "\n".join(lines)


def _use(about: Mapping[str, Any]) -> str:
    if about["kind"] == "whole":
        return "`diptych intent score SCORER TABLE --out SCORES`, a table with the same columns."
    return (
        "`diptych intent score SCORER example.json`, or in Python:\n\n"
        "```python\n"
        "from diptych.commerce.purchase_intent.scoring import Scorer\n\n"
        'scorer = Scorer.open("SCORER")\n'
        'score = scorer.score({"device": "pc", "channel": "direct", "events": [{"t": 0, "page_type": "home"}]})\n'
        "print(score.p, [reason.text for reason in score.reasons])\n"
        "```"
    )
