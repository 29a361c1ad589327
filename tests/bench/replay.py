"""A stand-in for an API server that replays one watch at a steady rate, as a process of its own.

It speaks as much HTTP as a client of watches needs, over TLS as a real one does; that is most of
what an event costs its receiver.

    python -m tests.bench.replay RATE SECONDS CERTIFICATE+KEY

prints its port, serves until its standard input ends, and prints how long the replay took.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from typing import Any

FIRST_VERSION = 1000
#: how often a second a batch is sent; a server under load batches too
TICKS = 200
RESOURCES = {
    "/api/v1": {
        "pods": "Pod",
        "nodes": "Node",
        "services": "Service",
        "events": "Event",
        "namespaces": "Namespace",
        "configmaps": "ConfigMap",
    },
    "/apis/apps/v1": {"deployments": "Deployment"},
}
PODS = 50


def pod(number: int, version: int) -> dict[str, Any]:
    """A worker of an elastic job as training-operator makes them: about 8 KB, as on a cluster."""
    name = f"job-worker-{number}"
    fields = {f"f:{word}": {".": {}, "f:value": {}} for word in _WORDS}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "replay",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {f"training.kubeflow.org/{w}": w for w in _WORDS[:5]},
            "annotations": {"count": str(version - FIRST_VERSION)},
            "ownerReferences": [
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": "PyTorchJob",
                    "name": "job",
                    "uid": "00000000-0000-4000-8000-000000000000",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": fields, "f:spec": fields},
                }
                for manager in ("training-operator.v1", "kubelet")
            ],
        },
        "spec": {
            "nodeName": f"node-{number % 8}",
            "schedulerName": "scheduler-plugins-scheduler",
            "restartPolicy": "Never",
            "volumes": [{"name": w, "hostPath": {"path": f"/{w}", "type": ""}} for w in _WORDS[:6]],
            "containers": [
                {
                    "name": "pytorch",
                    "image": "base:1",
                    "command": ["torchrun", "/programs/train_digits.py"],
                    "env": [{"name": f"PET_{w.upper()}", "value": w} for w in _WORDS[:12]],
                    "resources": {
                        "limits": {"nvidia.com/gpu": "1"},
                        "requests": {"nvidia.com/gpu": "1"},
                    },
                    "volumeMounts": [{"name": w, "mountPath": f"/{w}"} for w in _WORDS[:6]],
                }
            ],
            "tolerations": [
                {"key": k, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for k in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": t,
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
                for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": "pytorch",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "image": "base:1",
                    "imageID": "sha256:" + "0" * 64,
                    "containerID": "containerd://" + "0" * 64,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                    "lastState": {},
                }
            ],
            "hostIP": "172.18.0.2",
            "podIP": "10.244.1.2",
            "podIPs": [{"ip": "10.244.1.2"}],
            "startTime": "2026-01-01T00:00:00Z",
        },
    }


_WORDS = [
    "rdzv_backend",
    "rdzv_id",
    "rdzv_conf",
    "rdzv_endpoint",
    "standalone",
    "max_restarts",
    "monitor_interval",
    "start_method",
    "nproc_per_node",
    "nnodes",
    "node_rank",
    "log_dir",
    "role",
    "tee",
    "local_addr",
    "volume_mounts",
    "resources",
    "image",
    "command",
    "terminationMessagePath",
    "terminationMessagePolicy",
]


def serve(rate: float, seconds: float, certificate: str) -> None:
    """See the module."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_accept, args=(listener, context, rate, seconds), daemon=True).start()
    sys.stdin.read()


def _accept(listener: socket.socket, context: ssl.SSLContext, rate: float, seconds: float) -> None:
    while True:
        connection, _ = listener.accept()
        args = (connection, context, rate, seconds)
        threading.Thread(target=_talk, args=args, daemon=True).start()


def _talk(plain: socket.socket, context: ssl.SSLContext, rate: float, seconds: float) -> None:
    connection = context.wrap_socket(plain, server_side=True)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = connection.makefile("rb")
    while request := reader.readline():
        while reader.readline().strip():
            pass
        path, _, query = request.split()[1].decode().partition("?")
        if "watch=true" in query:
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            if path.endswith("/pods"):
                _replay(connection, rate, seconds)
            threading.Event().wait()
        elif path in RESOURCES:
            found = [
                {"name": name, "kind": kind, "namespaced": True}
                for name, kind in RESOURCES[path].items()
            ]
            _answer(connection, {"resources": found})
        elif path.rpartition("/")[0] in RESOURCES:
            _answer(connection, {"metadata": {"resourceVersion": str(FIRST_VERSION)}, "items": []})
        else:
            _answer(connection, {"message": "not served", "code": 404}, "404 Not Found")


def _answer(connection: ssl.SSLSocket, body: dict[str, Any], status: str = "200 OK") -> None:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    connection.sendall(head.encode() + b"\r\n\r\n" + data)


def _replay(connection: ssl.SSLSocket, rate: float, seconds: float) -> None:
    total = int(rate * seconds)
    lines = [
        json.dumps(
            {
                "type": "MODIFIED" if n >= PODS else "ADDED",
                "object": pod(n % PODS, FIRST_VERSION + 1 + n),
            }
        ).encode()
        for n in range(total)
    ]
    start = time.monotonic()
    for number, line in enumerate(lines):
        wait = start + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        chunk = line + b"\n"
        connection.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
    print(f"{time.monotonic() - start:.3f}", flush=True)


if __name__ == "__main__":
    serve(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
