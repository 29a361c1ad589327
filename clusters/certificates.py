"""Keys and certificates of clusters whose processes run on this host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusters.command import run
from clusters.errors import CommandError, PartError
from clusters.parts import gobuild, pins


@dataclass(frozen=True)
class Request:
    """A key and its certificate, ``NAME.key`` and ``NAME.crt``.

    Attributes:
        issuer: name of the certificate that signs it; "" for itself.
        cn, o: common name and organisations: what the API server takes for user and groups.
        dns, ip: names and addresses that it serves.
        ca: it may sign others.
        rsa: an RSA key of 2048 bits (PKCS 1) instead of an elliptic one: some programs read no
            others.
        key_only: no certificate at all.
    """

    name: str
    issuer: str = ""
    cn: str = ""
    o: Sequence[str] = ()
    dns: Sequence[str] = ()
    ip: Sequence[str] = ()
    ca: bool = False
    rsa: bool = False
    key_only: bool = False


def issue(folder: Path, requests: Sequence[Request]) -> None:
    """Make them in *folder*, in the given order; valid from an hour ago, for ten years.

    Raises:
        PartError: the program that makes them could not be built, or failed.
    """
    program = gobuild.build_file("certs", (pins.FOLDER / "certs.go").read_text()) / "certs"
    wanted = [
        {
            "Name": each.name, "Issuer": each.issuer, "CN": each.cn, "O": list(each.o),
            "DNS": list(each.dns), "IP": list(each.ip), "CA": each.ca, "RSA": each.rsa,
            "KeyOnly": each.key_only,
        }
        for each in requests
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run([str(program), str(folder)], stdin=json.dumps(wanted), timeout=60)
    except CommandError as error:
        raise PartError(f"no certificates could be made: {error}") from error
