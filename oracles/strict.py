"""YAML files of ours, checked: a typing error in one is a line that names it, not a surprise."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from oracles.errors import UsageError


class Strict(BaseModel):
    """Data that has exactly the named fields, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def load[M: BaseModel](model: type[M], path: Path, what: str) -> M:
    """The YAML file *path* as *model*.

    Raises:
        UsageError: not readable, not YAML, or not of the model's form; each problem on a line.
    """
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: no readable {what}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {error}") from error
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path} is not a {what}:\n" + problems(error)) from error


def problems(error: ValidationError) -> str:
    """What is wrong, one line each: where, and what."""
    return "\n".join(
        f"  {'.'.join(str(part) for part in item['loc']) or 'it'}: {item['msg']}"
        for item in error.errors()
    )
