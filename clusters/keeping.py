"""A program of this host that is started again whenever it ends, by a shell that keeps it.

The shell outlives this process. In the folder of what it keeps are ``keeper`` (the shell's pid and
when it began), ``pid`` (the program's, and how often it was started again) and ``log``. The
program belongs to a cluster, by whose folder it is known (:mod:`clusters.belonging`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from clusters import belonging
from clusters.processes import start_of

#: starts the program again and again. Its first start is at once; the pause grows to 5 s while it
#: lives for less than 10 s, as the kubelet's does to 300: a loop of crashes must not eat a core
_SCRIPT = """
state=$1 once=$2
shift 2
count=0 pause=0
while :; do
  begun=$(date +%s)
  "$@" &
  child=$!
  echo "$child $count" >"$state.new" && mv "$state.new" "$state"
  wait "$child"
  code=$?
  [ -z "$once" ] || { echo "--- ended with code $code ---"; exit "$code"; }
  count=$((count + 1))
  echo "--- ended with code $code, start $count follows in $pause s ---"
  sleep "$pause"
  [ $(($(date +%s) - begun)) -lt 10 ] || pause=0
  [ "$pause" -ge 5 ] || pause=$((pause + 1))
done
"""


def start(
    cluster: Path, folder: Path, words: Sequence[str], *, env: Mapping[str, str], cwd: Path,
    restarts: bool,
) -> None:  # fmt: skip
    """Start a program, and keep it.

    Args:
        cluster: folder of the cluster that it belongs to.
        env: variables on top of this process's own.
        restarts: start it again when it ends.
    """
    once = "" if restarts else "once"
    keeper = belonging.start(
        cluster, ["/bin/sh", "-c", _SCRIPT, "keeper", str(folder / "pid"), once, *words],
        env=env, cwd=cwd, log=folder / "log",
    )  # fmt: skip
    (folder / "keeper").write_text(f"{keeper} {start_of(keeper) or 0}")


def stop(cluster: Path, folder: Path) -> None:
    """Kill it and its keeper, without notice; no error when they do not run."""
    if (shell := keeper(folder)) is not None:
        belonging.kill(shell, group=True)  # with what it keeps: it leads their group
    pid, _ = program(cluster, folder)
    if pid is not None:
        belonging.kill(pid)
    for name in ("keeper", "pid"):
        (folder / name).unlink(missing_ok=True)


def keeper(folder: Path) -> int | None:
    """The pid of the shell that keeps it; None when nobody does."""
    found = _numbers(folder / "keeper")
    return found[0] if len(found) == 2 and start_of(found[0]) == found[1] else None


def program(cluster: Path, folder: Path) -> tuple[int | None, int]:
    """The program's own pid, None while it does not run; and how often it was started again."""
    pid, restarts = [*_numbers(folder / "pid"), 0, 0][:2]
    return pid if pid and belonging.belongs(pid, cluster) else None, restarts


def _numbers(file: Path) -> list[int]:
    try:
        return [int(word) for word in file.read_text().split()]
    except (OSError, ValueError):
        return []
