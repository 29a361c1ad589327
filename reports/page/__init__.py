"""The report as one self-contained HTML page."""

from reports.page.render import html

__all__ = ["html"]
