"""A storm blows: strikes at their times, then calm, then everything has to be well."""

from __future__ import annotations

import heapq
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from chaos import looking
from chaos.errors import FaultError
from chaos.faults.base import Fault
from chaos.session import Session
from chaos.storm import deeds
from chaos.storm.deeds import Fleet
from chaos.storm.schedule import Schedule, Strike
from clusters.cluster import Capability
from clusters.errors import ApiError, ClusterError, WaitTimeout
from clusters.kube import PODS, SERVICES, Object, conditions
from clusters.progress import say
from oracles.errors import HarnessError, NotApplicable
from oracles.relations import JOB_NAME

#: seconds of calm within which jobs have to run again, to end, and to leave nothing
RUNS, ENDS, GONE = 180.0, 120.0, 60.0
#: how often what does not mend is tried, and seconds before it is tried again
TRIES, AGAIN = 4, 2.0
#: file with what was done
LOG = "storm.jsonl"


@dataclass
class Storm:
    """What became of a storm.

    Attributes:
        done, missed: how many strikes hit something, and how many found nothing to hit.
        broken: promises of the systems under test that were not kept once it was calm.
        failed: name -> kind of jobs that are Failed; :mod:`chaos.storm.failing` tells how.
        unsure: what keeps anybody from saying.
    """

    done: int = 0
    missed: int = 0
    broken: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)


def blow(it: Session, schedule: Schedule, folder: Path) -> Storm:
    """Blow a storm over the session's namespace and cluster; everything is mended afterwards."""
    before = looking.look(it.site)
    found, fleet = Storm(), Fleet()
    start = time.monotonic()
    mends: list[tuple[float, int, Fault]] = []
    tries: Counter[int] = Counter()
    log = (folder / LOG).open("a")

    def note(word: str, strike: Strike | None, what: str) -> None:
        line = {"t": round(time.monotonic() - start, 2), "what": word, "said": what}
        if strike is not None:
            line |= {"strike": strike.number, "deed": strike.deed}
        log.write(json.dumps(line) + "\n")
        log.flush()

    def mend_until(moment: float) -> None:
        while mends and mends[0][0] <= moment:
            due, number, fault = heapq.heappop(mends)
            _sleep_until(start + due)
            try:
                it.injector.recover(fault)
            except HarnessError as error:
                tries[number] += 1
                text = f"{fault.name} is not mended: {error}"
                if tries[number] < TRIES:  # what else is broken may be in its way
                    note("not mended yet", None, f"strike {number}: {text}")
                    later = max(mends[0][0] if mends else due, time.monotonic() - start)
                    heapq.heappush(mends, (later + AGAIN, number, fault))
                else:
                    found.unsure.append(text)
            else:
                note("mended", None, f"strike {number}: {fault.name}")

    try:
        for strike in schedule.strikes:
            # a storm that is late mends first: what is frozen would make the next strike late, too
            while mends and mends[0][0] <= max(strike.at, time.monotonic() - start):
                mend_until(mends[0][0])
            _sleep_until(start + strike.at)
            try:
                what = _strike(it, fleet, strike, mends, start)
            except NotApplicable as error:
                found.missed += 1
                note("not applicable", strike, str(error))
            except FaultError as error:
                found.missed += 1
                note("missed", strike, str(error))
            except ClusterError as error:
                found.missed += 1
                note("failed", strike, str(error))
            else:
                found.done += 1
                note("done", strike, what)
            due = time.monotonic() - start
            planned = [fault for _, _, fault in mends]
            for fault in it.injector.open:
                if fault not in planned:  # it was not proven, and could not be mended at once
                    heapq.heappush(mends, (due, strike.number, fault))
        mend_until(float("inf"))
        note("calm", None, f"{found.done} strikes hit, {found.missed} found nothing")
        _calm(it, fleet, before, found)
    finally:
        try:
            it.injector.close()
        except HarnessError as error:
            found.unsure.append(str(error))
        for line in (*found.broken, *found.unsure):
            note("wrong", None, line)
        log.close()
    return found


def _strike(
    it: Session, fleet: Fleet, strike: Strike, mends: list[tuple[float, int, Fault]], start: float
) -> str:
    if strike.deed in ("pytorchjob", "tfjob", "gang"):
        return deeds.submit(it, fleet, strike)
    if strike.deed == "finish":
        names = sorted((fleet.jobs.keys() | fleet.gangs.keys()) - fleet.told)
        if len(names) < 2:  # one is left for others to hit
            raise FaultError("there is nothing that could finish")
        name = names[int(strike.pick * len(names)) % len(names)]
        deeds.finish(it, fleet, name)
        return name
    fault = deeds.fault(it, fleet, strike)
    proof = it.injector(fault, strike=strike.number)
    # also what mends itself is waited for: the next one shall find it whole
    due = time.monotonic() - start + strike.lasts  # from its proof on, which may have taken long
    heapq.heappush(mends, (due, strike.number, fault))
    return proof.what


def _calm(it: Session, fleet: Fleet, before: looking.State, found: Storm) -> None:
    """Everything has to run, to end, and to leave nothing."""
    say(f"calm after {found.done} strikes: {len(fleet.jobs)} jobs, {len(fleet.gangs)} gangs")
    deeds.take_back(it, fleet)
    names = sorted(fleet.jobs.keys() | fleet.gangs.keys())
    for name in names:
        deeds.finish(it, fleet, name)
    telling = threading.Event()
    if Capability.CONTAINERS not in it.site.cluster.capabilities:
        # no program reads the order there: pods that come later have to be told, too
        threading.Thread(
            target=_tell_on, args=(it, fleet, names, telling), name="orders", daemon=True
        ).start()
    try:
        _ends(it, fleet, found)
    finally:
        telling.set()
    _leaves_nothing(it, fleet, before, found)


def _tell_on(it: Session, fleet: Fleet, names: Sequence[str], over: threading.Event) -> None:
    while not over.wait(2.0):
        for name in names:
            with suppress(HarnessError):
                deeds.finish(it, fleet, name)


def _ends(it: Session, fleet: Fleet, found: Storm) -> None:
    for name, kind in fleet.jobs.items():
        what = it.operator.jobs[kind]
        ended = _promise(
            found,
            f"{kind} {name} succeeds within {RUNS + ENDS:.0f} s of calm",
            lambda what=what, name=name: it.kube.wait(  # type: ignore[misc]
                what, _ended, namespace=it.namespace, fields=f"metadata.name={name}",
                deadline=RUNS + ENDS, why=f"{name} Succeeded",
            ),
        )  # fmt: skip
        if ended == "Failed":
            found.failed[name] = kind
    for name, count in fleet.gangs.items():
        _promise(
            found,
            f"the {count} pods of the gang {name} succeed",
            lambda name=name, count=count: it.kube.wait(  # type: ignore[misc]
                PODS, lambda pods: _all_succeeded(pods, count), namespace=it.namespace,
                labels=f"{deeds.GANG_LABEL}={name}", deadline=RUNS, why=f"{name} succeeded",
            ),
        )  # fmt: skip


def _leaves_nothing(it: Session, fleet: Fleet, before: looking.State, found: Storm) -> None:
    for name, kind in fleet.jobs.items():
        it.kube.delete(it.operator.jobs[kind], name, it.namespace)
    for what in (PODS, SERVICES):
        _promise(
            found,
            f"no {what.plural} of deleted jobs are left",
            lambda what=what: it.kube.wait(  # type: ignore[misc]
                what, lambda items: None if items else True, namespace=it.namespace,
                labels=JOB_NAME, deadline=GONE, why=f"no {what.plural}",
            ),
        )  # fmt: skip
    end = time.monotonic() + GONE
    while different := looking.differences(before, looking.look(it.site)):
        if time.monotonic() > end:
            found.unsure += [f"the cluster is not as before: {line}" for line in different]
            return
        time.sleep(1.0)


def _promise(found: Storm, what: str, wait: Callable[[], object]) -> object:
    try:
        return wait()
    except WaitTimeout as error:
        found.broken.append(f"{what}: {error}")
    except (ApiError, ClusterError) as error:
        found.unsure.append(f"{what}: {error}")
    return None


def _ended(jobs: list[Object]) -> str | None:
    now = conditions(jobs[0]) if jobs else {}
    return next((end for end in ("Succeeded", "Failed") if now.get(end) == "True"), None)


def _all_succeeded(pods: list[Object], count: int) -> bool | None:
    done = [pod for pod in pods if pod["status"].get("phase") == "Succeeded"]
    # evicted and deleted pods of a gang without a job are made by nobody again
    return True if len(done) == len(pods) <= count else None


def _sleep_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(min(left, 0.5))
