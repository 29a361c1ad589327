"""Finding things on a timeline."""

from __future__ import annotations

from history_samples import Story

from reports.timeline.build import build
from reports.timeline.model import Group, Lane, Timeline


def page(story: Story) -> Timeline:
    """The timeline of a story."""
    return build(
        story.events,
        title="t",
        outcome="FAIL",
        violations=story.violations,
        header=story.header,
    )


def group(timeline: Timeline, title: str) -> Group:
    """A group by its title."""
    return next(each for each in timeline.groups if each.title == title)


def lane(timeline: Timeline, id: str) -> Lane:
    """A lane by its id."""
    return next(each for g in timeline.groups for each in g.lanes if each.id == id)


def states(found: Lane, row: int = 0) -> list[str]:
    """States of a row, in their order."""
    return [segment.state for segment in found.rows[row].segments]


def said(timeline: Timeline) -> list[str]:
    """Texts of what happened."""
    return [moment.text for moment in timeline.moments]
