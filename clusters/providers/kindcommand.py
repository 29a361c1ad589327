"""The command ``kind``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clusters import cache
from clusters.command import run_logged
from clusters.engine import Engine
from clusters.errors import ClusterError, CommandError
from clusters.providers.containers import LABEL, PREFIX

#: seconds; measured 15-30 on 2 cores
CREATE_TIMEOUT = 300.0


def create(
    docker: Engine, program: Path, name: str, folder: Path, detail: Callable[[str], None]
) -> None:
    """Run ``kind create cluster`` with the configuration in *folder*; a kubeconfig is put there.

    Raises:
        ClusterError: with kind's reason, and where its log was kept.
        EngineError: the engine went away.
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
        docker.docker("version", timeout=20)  # if it is the engine that went away, that is said
        told = log.read_text(errors="replace") if log.exists() else ""
        kept = cache.root() / "logs" / f"kind-create-{name}.log"  # the cluster's folder goes
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(told + _journals(docker, name))
        raise ClusterError(
            f"kind could not create cluster {name}: {reason(told, error)}",
            hint=f"python -m clusters doctor; kind's log and the nodes' are in {kept}",
        ) from error
    os.chmod(folder / "kubeconfig", 0o600)


def _plain(line: str) -> str:
    """A line of kind without its pictures."""
    return re.sub(r"[^\x20-\x7e]+", "", line).strip(" .")


def reason(output: str, error: CommandError) -> str:
    """What kind complains of: its last error, and the end of what the failed command printed."""
    lines = [line.strip()[:300] for line in output.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.startswith("ERROR")]
    if not starts:
        return str(error).splitlines()[0]
    first, *rest = lines[starts[-1] :]
    # `docker run` and its twenty options are in the log; why it failed stands behind them
    first = re.sub(r'command "(\S+ \S+).*', r'"\1 ..." failed', first.removeprefix("ERROR: "))
    shown = rest if len(rest) <= 4 else ["...", *rest[-3:]]
    return "\n  | ".join([first, *shown])


def _journals(docker: Engine, name: str) -> str:
    """The last words of each node's kubelet: kubeadm only knows that it did not come up."""
    label = f"label={LABEL}={PREFIX}{name}"
    text = ""
    with suppress(CommandError):
        for node in docker.docker("ps", "--filter", label, "--format", "{{.Names}}").split():
            journal = ["journalctl", "-u", "kubelet", "-n", "60", "--no-pager"]
            text += f"\n==> kubelet of {node}\n{docker.docker('exec', node, *journal, timeout=20)}"
    return text
