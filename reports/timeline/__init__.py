"""A page per test: everything that was seen, over one axis of time, in one HTML file."""

from reports.timeline.render import write

__all__ = ["write"]
