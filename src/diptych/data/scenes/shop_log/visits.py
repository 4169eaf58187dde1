"""A block of visitors, whole: people, their sessions and the pages of these, with no two at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.data.scenes.shop_log.calendar import HOUR
from diptych.data.scenes.shop_log.paths import Paths, draw_paths
from diptych.data.scenes.shop_log.people import People, draw_people
from diptych.data.scenes.shop_log.sessions import Sessions, draw_sessions
from diptych.data.scenes.shop_log.world import LONGEST_GAP, World


@dataclass(frozen=True)
class Visits:
    """What the visitors of a block do."""

    people: People
    sessions: Sessions
    paths: Paths


def visits_of(world: World, numbers: np.ndarray) -> Visits:
    """All sessions of these visitors; those of each depend on the visitor's number alone.

    A session that would begin while the visitor's last one runs, or less than 30 minutes after it, begins 30
    minutes and a microsecond after it where that is in the same hour, and is dropped otherwise.
    """
    people = draw_people(world, numbers)
    sessions = draw_sessions(world, people)
    paths = draw_paths(world, sessions)
    start_us, kept = _one_after_the_other(world, sessions, _durations(sessions, paths))
    sessions = sessions.but(start_us=start_us)
    if not kept.all():
        paths = paths.take(kept[paths.session])
        paths = paths.but(session=(np.cumsum(kept) - 1)[paths.session])
        sessions = sessions.take(kept)
    return Visits(people, sessions, paths)


def moment_inside(dwell_us: np.ndarray) -> np.ndarray:
    """How long after a page is opened something is put into the basket there, or taken out."""
    moments: np.ndarray = dwell_us * 2 // 5
    return moments


def _durations(sessions: Sessions, paths: Paths) -> np.ndarray:
    """From the first to the last event of each session."""
    last = np.cumsum(sessions.pages) - 1
    does = paths.add[last] | (paths.removed[last] >= 0)
    durations: np.ndarray = paths.open_us[last] + np.where(does, moment_inside(paths.dwell_us[last]), 0)
    return durations


def _one_after_the_other(
    world: World, sessions: Sessions, durations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """When each session begins, and whether it does: (n,) microseconds and bool."""
    start_us, person = sessions.start_us.copy(), sessions.person
    kept = np.ones(len(start_us), bool)
    soon = (person[1:] == person[:-1]) & (start_us[1:] - (start_us + durations)[:-1] <= LONGEST_GAP)
    for busy in np.unique(person[1:][soon]):  # few, and each with a few sessions
        rows = range(*np.searchsorted(person, [busy, busy + 1]))
        free_us = start_us[rows[0]]
        for row in rows:
            if start_us[row] < free_us:
                both = world.calendar.local_us(np.array([start_us[row], free_us])) // HOUR
                kept[row] = both[0] == both[1]
                start_us[row] = free_us
            if kept[row]:
                free_us = start_us[row] + durations[row] + LONGEST_GAP + 1
    return start_us, kept
