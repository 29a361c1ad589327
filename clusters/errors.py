"""What can go wrong with clusters and the parts they are made of."""

from __future__ import annotations

from oracles.errors import HarnessError, UsageError


class ClusterError(HarnessError):
    """A cluster could not be made, reached, changed or removed."""


class UnknownVersion(UsageError):
    """A version that nothing pins and no source has."""


class TopologyError(UsageError):
    """A topology file that does not describe a cluster."""


class EngineError(HarnessError):
    """The Docker engine is missing, does not answer, or went away."""


class PartError(HarnessError):
    """A part (node image, binary, operator image) could not be obtained."""


class CommandError(HarnessError):
    """A command that we ran ended badly; ``output`` holds the end of what it printed."""

    def __init__(
        self, message: str, *, output: str = "", code: int = -1, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.output = output
        self.code = code

    def __str__(self) -> str:
        text = super().__str__()
        tail = "\n".join(f"  | {line}" for line in self.output.strip().splitlines()[-15:])
        return f"{text}\n{tail}" if tail else text


class ProcessError(ClusterError):
    """A local process cannot be started or does not get ready; ``output`` ends its log."""

    def __init__(self, message: str, *, output: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.output = output

    def __str__(self) -> str:
        tail = "\n".join(f"  | {line}" for line in self.output.strip().splitlines()[-15:])
        return f"{super().__str__()}\n{tail}" if tail else super().__str__()


class WrongName(ClusterError, UsageError):
    """A cluster's name that is not there, or is there already."""


class Unreachable(ClusterError):
    """The API server did not answer."""


class ApiError(ClusterError):
    """The API server refused; ``status`` is the HTTP status."""

    def __init__(self, message: str, *, status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class NotServed(ApiError):
    """The API server does not serve a kind, or does not yet."""

    def __init__(
        self, message: str, *, kind: str, status: int = 404, hint: str | None = None
    ) -> None:
        super().__init__(message, status=status, hint=hint)
        self.kind = kind


class Expired(ApiError):
    """A watch or list asked for a resource version that the server no longer has."""

    def __init__(self, message: str, *, status: int = 410, hint: str | None = None) -> None:
        super().__init__(message, status=status, hint=hint)


class WaitTimeout(ClusterError):
    """A state was not reached before its deadline; the message says what was last seen.

    Whose fault it is depends on what was waited for: a test turns it into a failed behaviour, an
    installation into an infrastructure error.
    """
