"""A volume that is full: one of a pod's, with a size of its own. Never a disk of the host."""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof, Scope
from chaos.site import Site
from chaos.undo.steps import InPod, Step

#: the largest volume that is filled; more is taken for a disk of the host
LARGEST_MB = 256
#: file systems that are a pod's own: they have a size, and take no room of anybody else
_OWN = ("tmpfs",)
FILE = ".muster-fill"


class FillVolume(Planned):
    """Fill a volume in memory (``emptyDir`` with ``medium: Memory`` and a size limit).

    Nothing else is filled: another kind of emptyDir lies on the node's disk, which is the host's.
    """

    name = "fill volume"
    scope = Scope.NAMESPACE

    def __init__(self, site: Site, namespace: str, pod: str, container: str, path: str) -> None:
        super().__init__(site)
        self.namespace = namespace
        self.pod = pod
        self._container = container
        self._path = path.rstrip("/")
        self._file = f"{self._path}/{FILE}"
        self._size = 0
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which volume."""
        return f"{self._path} of {self.namespace}/{self.pod}"

    def look(self) -> Sequence[Step]:
        """Whether it is such a volume; the file is removed again."""
        pod = self.site.pod(self.namespace, self.pod)
        kind, self._size, _ = self._df()
        if kind not in _OWN:
            raise FaultError(
                f"{self.about} is {kind}, which is not a volume with a size of its own: not filled",
                hint="use an emptyDir with medium Memory and a sizeLimit",
            )
        if self._size > LARGEST_MB << 10:
            raise FaultError(
                f"{self.about} has {self._size >> 10} MB, over {LARGEST_MB}: not filled"
            )
        return [
            InPod(
                namespace=self.namespace, pod=self.pod, uid=pod["metadata"]["uid"],
                container=self._container, command=["rm", "-f", self._file, f"{self._file}.2"],
            )
        ]  # fmt: skip

    def inject(self) -> None:
        """Write until there is no room."""
        self.plan()
        self._done = time.time()
        self._run(f"head -c {LARGEST_MB}M /dev/zero > {self._file}; sync; true")

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """No room is left, and another file cannot be written. Raises NotProven."""
        _, size, free = self._df()
        said = self._run(
            f"head -c 4096 /dev/zero > {self._path}/{FILE}.2; rm -f {self._path}/{FILE}.2"
        )
        if free > 0 or "No space" not in said:
            raise NotProven(f"{self.about} was filled, but {free} kB are free; writing: {said!r}")
        return Proof(
            f"{self.about} is full",
            {"size": f"{size} kB", "free": f"{free} kB", "writing": said.strip()[-100:]},
            self._done,
        )

    def _df(self) -> tuple[str, int, int]:
        text = self._run(f"df -k --output=fstype,size,avail,target {self._path} | tail -1").split()
        if len(text) < 4 or text[3] != self._path:
            raise FaultError(
                f"{self.about} is no mount of its own: {' '.join(text) or 'no answer'}"
            )
        return text[0], int(text[1]), int(text[2])

    def _run(self, script: str) -> str:
        done = self.site.kube.exec(
            self.namespace, self.pod, ["sh", "-c", script], container=self._container, timeout=60
        )
        return done.stdout + done.stderr
