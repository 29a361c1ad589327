"""The pinned versions."""

from __future__ import annotations

import re

import pytest

from clusters.errors import UnknownVersion
from clusters.parts import pins

_SUM = re.compile(r"h1:[A-Za-z0-9+/]{43}=")


def test_every_pin_is_whole() -> None:
    found = pins.pins()
    assert found.kubernetes.default in found.kubernetes.versions
    for version, pin in found.kubernetes.versions.items():
        assert re.fullmatch(r"1\.\d+\.\d+", version)
        assert _SUM.fullmatch(pin.sum)
        if pin.tags is not None:
            assert pin.pull == f"kindest/node:v{version}"
            assert pins.node_pin(version).tags == pin.tags
        else:
            assert pin.pull is None
            with pytest.raises(UnknownVersion, match="embedded control plane only"):
                pins.node_pin(version)
    for name, program in found.programs.items():
        assert program.default in program.versions, name
        assert set(program.images) <= set(program.binaries), name
        for version, at in program.versions.items():
            assert not version.startswith("v"), name
            assert _SUM.fullmatch(at.sum), (name, version)
            assert set(at.pull) <= set(program.images), (name, version)
        for path in program.binaries.values():
            assert path == "." or path.startswith(program.module)
        assert (program.main is not None) == (list(program.binaries.values()) == ["."]), name


def test_the_versions_that_are_promised() -> None:
    found = pins.pins()
    assert {"1.34.4", "1.28.9", "1.36.3"} <= set(found.kubernetes.versions)
    assert found.kubernetes.default == "1.34.4"
    assert found.programs["training-operator"].default == "1.8.1"
    assert found.programs["scheduler-plugins"].default == "0.28.9"


def test_an_unknown_version_is_told_with_those_that_are_known() -> None:
    with pytest.raises(UnknownVersion, match=r"(?s)'1\.2\.3' is not pinned.*1\.34\.4, 1\.28\.9"):
        pins.kubernetes_pin("1.2.3")
    with pytest.raises(UnknownVersion, match="without a leading v"):
        pins.kubernetes_pin("v1.34.4")
    with pytest.raises(UnknownVersion, match=r"(?s)training-operator '9' .*1\.8\.1.*@image:REF"):
        pins.program_pin("training-operator", "9")
    assert UnknownVersion("x").exit_code == 2


def test_programs() -> None:
    operator = pins.program("training-operator")
    assert operator.version == "1.8.1"
    assert operator.main is None
    assert operator.sum == pins.pins().programs["training-operator"].versions["1.8.1"].sum
    coredns = pins.program("coredns")
    assert coredns.main is not None
    assert "package main" in coredns.main


def test_kubernetes_knows_its_version() -> None:
    program = pins.kubernetes_program("1.28.9")
    assert set(program.binaries) == set(pins.KUBERNETES_BINARIES)
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert program.variables[f"{package}.gitVersion"] == "v1.28.9"
        assert program.variables[f"{package}.gitMajor"] == "1"
        assert program.variables[f"{package}.gitMinor"] == "28"
