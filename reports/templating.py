"""Templates of pages, and the files that are put into them."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template


@cache
def read(package: str, name: str) -> str:
    """The text of a file beside a package's modules; *name* may have folders."""
    return files(package).joinpath(*name.split("/")).read_text(encoding="utf-8")


@cache
def template(package: str, name: str) -> Template:
    """A template that escapes what it is given, and refuses names that nobody gave."""
    environment = Environment(
        loader=FunctionLoader(partial(read, package)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
