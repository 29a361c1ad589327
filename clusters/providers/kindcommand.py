"""The command ``kind``."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from clusters import cache
from clusters.command import run_logged
from clusters.engine import Engine
from clusters.errors import ClusterError, CommandError
from clusters.providers.containers import PREFIX

#: seconds; measured 15-30 on 2 cores
CREATE_TIMEOUT = 300.0


def create(
    docker: Engine, program: Path, name: str, folder: Path, detail: Callable[[str], None]
) -> None:
    """Run ``kind create cluster`` with the configuration in *folder*; a kubeconfig is put there.

    Raises:
        ClusterError: with kind's reason, and where its log was kept.
    """
    log = folder / "kind-create.log"
    try:
        run_logged(
            [str(program), "create", "cluster", "--name", PREFIX + name, "--retain",
             "--config", str(folder / "kind.yaml"), "--kubeconfig", str(folder / "kubeconfig")],
            log, timeout=CREATE_TIMEOUT, env=docker.env(),
            detail=lambda line: detail(_plain(line)),
            # its `docker run` commands must end by themselves: see containers.remove
            group=False,
        )  # fmt: skip
    except CommandError as error:
        kept = cache.root() / "logs" / f"kind-create-{name}.log"
        kept.parent.mkdir(exist_ok=True)
        if log.exists():
            shutil.copy(log, kept)  # the cluster's folder goes
        raise ClusterError(
            f"kind could not create cluster {name}: {reason(error)}",
            hint=f"python -m clusters doctor; kind's whole log is {kept}",
        ) from error
    os.chmod(folder / "kubeconfig", 0o600)


def _plain(line: str) -> str:
    """A line of kind without its pictures."""
    return re.sub(r"[^\x20-\x7e]+", "", line).strip(" .")


def reason(error: CommandError) -> str:
    """What kind complains of: its last error and what the failed command printed."""
    lines = [line.strip() for line in error.output.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.startswith("ERROR")]
    if not starts:
        return str(error).splitlines()[0]
    told = [line.removeprefix("ERROR: ") for line in lines[starts[-1] :]]
    text = " ".join(dict.fromkeys(told))
    # `docker run` and its twenty options are in the log; why it failed stands behind them
    return re.sub(r'command "(\S+ \S+).*?" failed', r'"\1 ..." failed', text)[:600]
