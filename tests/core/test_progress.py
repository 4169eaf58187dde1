from __future__ import annotations

from diptych.core.context import Task, report_to, track


class Recorder:
    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        self.events.append(f"start {description} {done}/{total} {unit}")
        recorder = self

        class Bar:
            def advance(self, steps: int = 1, note: str = "") -> None:
                recorder.events.append(f"+{steps}{note}")

        return Bar()

    def finish(self, task: Task) -> None:
        self.events.append("finish")


def test_tracked_items_advance_the_bar_that_is_installed() -> None:
    recorder = Recorder()
    with report_to(recorder):
        assert list(track(["a", "b"], "letters", unit="letters")) == ["a", "b"]
    assert recorder.events == ["start letters 0/2 letters", "+1", "+1", "finish"]
