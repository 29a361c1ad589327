"""The recorder: watches a cluster and writes its history.

with Recorder(kube, path, run="r", cluster="c", kinds=[Kind(...)]) as recorder:
    recorder.mark("test-start", "my test")
    ...
    recorder.settle()
"""

from oracles.recorder.api import KINDS, Api, Kind, Stream
from oracles.recorder.desk import Desk, Remote
from oracles.recorder.recorder import Notes, Recorder, Statistics

__all__ = ["KINDS", "Api", "Desk", "Kind", "Notes", "Recorder", "Remote", "Statistics", "Stream"]
