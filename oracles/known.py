"""Published upstream faults: what turns a FAIL into KNOWN, and nothing else does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import Field, field_validator

from oracles.strict import Strict, load

FILE = Path(__file__).with_name("known.yaml")


class KnownFault(Strict):
    """One published fault; see the head of ``known.yaml`` for the fields."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    behaviour: str
    case: str | None = None
    versions: dict[str, str] = Field(min_length=1)
    signature: str = Field(min_length=5)
    link: str = Field(pattern=r"^https://")
    note: str = Field(min_length=10)
    race: bool = False

    @field_validator("versions")
    @classmethod
    def _ranges(cls, versions: dict[str, str]) -> dict[str, str]:
        for product, text in versions.items():
            try:
                bounded = list(SpecifierSet(text))
            except InvalidSpecifier as error:
                raise ValueError(f"{product}: {error}") from error
            if not bounded:
                raise ValueError(f"{product}: an empty range would match every version")
        return versions

    @field_validator("signature")
    @classmethod
    def _compiles(cls, signature: str) -> str:
        try:
            pattern = re.compile(signature)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        if pattern.search(""):
            raise ValueError("it matches an empty text, so it would match anything")
        return signature

    def concerns(self, behaviour: str, case: str, versions: Mapping[str, str]) -> bool:
        """Whether the fault is expected of this behaviour on these versions.

        A build without a version (somebody's image or checkout) is in no range: what it shows is
        judged afresh.
        """
        if behaviour != self.behaviour or self.case not in (None, case):
            return False
        return all(
            _in_range(versions.get(product, ""), text) for product, text in self.versions.items()
        )


class KnownFaults(Strict):
    """The whole file."""

    entries: list[KnownFault]

    def expected(self, behaviour: str, case: str, versions: Mapping[str, str]) -> list[KnownFault]:
        """The faults that every attempt on these versions should show."""
        return [e for e in self._of(behaviour, case, versions) if not e.race]

    def _of(self, behaviour: str, case: str, versions: Mapping[str, str]) -> list[KnownFault]:
        return [e for e in self.entries if e.concerns(behaviour, case, versions)]

    def match(
        self, behaviour: str, case: str, versions: Mapping[str, str], violations: Iterable[str]
    ) -> KnownFault | None:
        """The fault that explains **all** *violations*; None when there is no such fault.

        One violation that no signature explains makes the attempt a FAIL: a known fault must not
        hide a new one beside it.
        """
        texts = list(violations)
        for entry in self._of(behaviour, case, versions):
            if texts and all(re.search(entry.signature, text) for text in texts):
                return entry
        return None


@cache
def known() -> KnownFaults:
    """The faults that come with the harness."""
    return load(KnownFaults, FILE, "list of known faults")


def _in_range(version: str, text: str) -> bool:
    try:
        return SpecifierSet(text).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
