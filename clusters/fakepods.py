"""Pods without containers: what they are told, where a provider has no real ones.

The annotations stand in a pod's template or are written to a pod that lives; on other providers
nobody reads them. ``clusters/providers/embedded/stages.yaml`` is what obeys.
"""

from __future__ import annotations

from clusters.errors import ClusterError
from clusters.kube import PODS, Kube

#: seconds from binding until its containers run; not given: at once
START_DELAY = "muster.dev/start-delay"
#: seconds that its containers run; not given: until told
RUN_FOR = "muster.dev/run-for"
#: exit code of all its containers after that time; not given: 0
EXIT_CODE = "muster.dev/exit-code"
#: reason for which its containers never start, such as ImagePullBackOff
STUCK = "muster.dev/stuck"
#: exit code with which they end at once, in the run that FINISH_RUN names
FINISH = "muster.dev/finish"
#: restart count of the run that is to end: so that what follows it is not ended, too
FINISH_RUN = "muster.dev/finish-run"
#: seconds from the deletion of a pod that a finalizer keeps until its containers have ended
LEAVE_FOR = "muster.dev/leave-for"


def finish(kube: Kube, namespace: str, name: str, code: int = 0) -> None:
    """Let the containers of a pod that runs end with *code*.

    Raises:
        ClusterError: there is no such pod, or its containers do not run.
    """
    pod = kube.get(PODS, name, namespace)
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
    if pod is None or "running" not in statuses[0].get("state", {}):
        raise ClusterError(f"pod {namespace}/{name} does not run, so nothing of it can end")
    notes = {FINISH: str(code), FINISH_RUN: str(statuses[0]["restartCount"])}
    kube.patch(PODS, name, {"metadata": {"annotations": notes}}, namespace)
