"""Experiments take long and break clusters: they run when they are asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over this folder unless an argument is in it: ``pytest suites/chaos``."""
    if collection_path != HERE and HERE not in collection_path.parents:
        return None
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        if path == HERE or HERE in path.parents:
            return None
    return True
