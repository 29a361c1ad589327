"""Who may reach an embedded control plane, and with what."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from clusters import certificates
from clusters.certificates import Request

#: what the API server's certificate is for, beside this host: a system that was given another
#: address of it expects the first
NAMES = ("kubernetes.default.svc", "kubernetes", "kubernetes.default", "localhost")
MASTERS = "system:masters"
#: component -> user and group. The controller manager and kwok may do all, as they make and change
#: whatever there is; the scheduler has the rights of any cluster's scheduler
USERS = {
    "admin": ("muster", MASTERS),
    "kube-controller-manager": ("system:kube-controller-manager", MASTERS),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", MASTERS),
}


def make_certificates(folder: Path) -> None:
    """All keys and certificates of a control plane. Raises PartError."""
    certificates.issue(
        folder,
        [
            Request("ca", cn="muster", ca=True),
            Request("apiserver", "ca", cn="kube-apiserver", dns=NAMES, ip=["127.0.0.1"]),
            Request("accounts", key_only=True),
            *(
                Request(name, "ca", cn=user, o=[group] if group else [])
                for name, (user, group) in USERS.items()
            ),
        ],
    )


def write_kubeconfig(path: Path, context: str, url: str, certs: Path, user: str) -> None:
    """A kubeconfig of one of USERS that needs no other file."""

    def data(file: str) -> str:
        return base64.b64encode((certs / file).read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": context,
                "cluster": {"server": url, "certificate-authority-data": data("ca.crt")},
            }
        ],
        "users": [
            {
                "name": context,
                "user": {
                    "client-certificate-data": data(f"{user}.crt"),
                    "client-key-data": data(f"{user}.key"),
                },
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    }
    path.touch(0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
