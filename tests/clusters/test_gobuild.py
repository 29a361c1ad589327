"""Building Go programs from pinned modules: with a Go command that only pretends, and for real."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from clusters import cache
from clusters.errors import PartError
from clusters.parts import gobuild
from clusters.parts.gobuild import GoProgram, _replace_line

PROGRAM = GoProgram(
    "tool", "example.org/tool", "1.2.3", "h1:right=",
    {"tool": "example.org/tool/cmd/tool", "other": "example.org/tool/cmd/other"},
    variables={"example.org/tool.version": "v1.2.3"}, require=("golang.org/x/sys@v0.1.0",),
)  # fmt: skip

#: logs its arguments and the go.mod that it finds; serves one module, whose source is $MODULE
GO = """#!/bin/sh
echo "$*" >> "$MODULE/calls"
case "$1 $2" in
"version "*) echo "go version go${GO_VERSION:-1.26.0} linux/amd64" ;;
"mod download") echo "{\\"Dir\\": \\"$MODULE\\", \\"Sum\\": \\"h1:right=\\"}" ;;
"mod edit") cat "$MODULE/go.json" ;;
"get -tool") cp go.mod "$MODULE/seen.mod" ;;
"build "*)
  [ -f "$MODULE/broken" ] && { echo "undefined: x" >&2; exit 1; }
  echo "$GOTMPDIR" > "$MODULE/tmpdir"
  while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
  echo "built $1" > "$out" ;;
esac
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a Go command that serves one module; the module's folder."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.json").write_text(json.dumps({"Go": "1.24.0"}))
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    monkeypatch.setenv("MODULE", str(folder))
    return folder


def calls(module: Path, what: str) -> list[str]:
    return [c for c in (module / "calls").read_text().splitlines() if c.startswith(what)]


# replacements


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        # Kubernetes' own staging folders are published under the same minor and patch
        (
            {"Path": "k8s.io/api"}, {"Path": "./staging/src/k8s.io/api"},
            "replace k8s.io/api => k8s.io/api v0.34.4",
        ),
        # a sibling in the same repository is required at its own release
        ({"Path": "go.etcd.io/etcd/api/v3"}, {"Path": "../api"}, None),
        ({"Path": "example.org/x"}, {"Path": "./x"}, None),
        (
            {"Path": "a.org/b", "Version": "v1.0.0"}, {"Path": "c.org/b", "Version": "v1.1.0"},
            "replace a.org/b v1.0.0 => c.org/b v1.1.0",
        ),
        (
            {"Path": "a.org/b"}, {"Path": "a.org/b", "Version": "v0.9.0"},
            "replace a.org/b => a.org/b v0.9.0",
        ),
    ],
)  # fmt: skip
def test_replace_lines(old: dict[str, str], new: dict[str, str], line: str | None) -> None:
    assert _replace_line({"Old": old, "New": new}, "1.34.4") == line


# building


def test_build(module: Path) -> None:
    (module / "go.json").write_text(
        json.dumps(
            {
                "Go": "1.24.0",
                "Replace": [
                    {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
                    {"Old": {"Path": "a.org/b"}, "New": {"Path": "../b"}},
                ],
            }
        )
    )
    folder = gobuild.build(PROGRAM)
    assert folder == gobuild.folder(PROGRAM)
    assert folder.name.startswith("tool-1.2.3-")
    assert {p.name: p.read_text() for p in folder.iterdir()} == {
        "tool": "built example.org/tool/cmd/tool\n",
        "other": "built example.org/tool/cmd/other\n",
    }
    assert (module / "seen.mod").read_text().split("\n") == [
        "module muster.local/build", "go 1.24.0", "", "require example.org/tool v1.2.3", "",
        "require golang.org/x/sys v0.1.0", "replace k8s.io/api => k8s.io/api v0.2.3", "",
    ]  # fmt: skip
    (get,) = calls(module, "get")
    assert get.split()[2:] == [
        "example.org/tool/cmd/other@v1.2.3", "example.org/tool/cmd/tool@v1.2.3",
    ]  # fmt: skip
    assert all("-X example.org/tool.version=v1.2.3" in call for call in calls(module, "build"))
    # what a killed build leaves must lie where the next one removes it
    assert (module / "tmpdir").read_text().startswith(str(cache.root() / "bin"))


def test_a_program_is_built_once(module: Path) -> None:
    for _ in range(2):
        gobuild.build(PROGRAM)
    assert len(calls(module, "build")) == 2  # one per binary


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.2.4"}, {"sum": "h1:x"}, {"variables": {}}, {"require": ()}, {"main": "x"},
        {"binaries": {"tool": "example.org/tool/cmd/tool"}}, {"module": "example.org/fork"},
    ],
)  # fmt: skip
def test_whatever_decides_the_binaries_is_in_the_key(
    module: Path, change: dict[str, object]
) -> None:
    assert replace(PROGRAM, **change).key != PROGRAM.key  # type: ignore[arg-type]


def test_the_compiler_is_in_the_key(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = PROGRAM.key
    assert PROGRAM.key == before
    monkeypatch.setenv("GO_VERSION", "1.27.0")
    assert PROGRAM.key != before


def test_another_content_than_pinned_is_refused(module: Path) -> None:
    wrong = replace(PROGRAM, sum="h1:wrong=")
    with pytest.raises(PartError, match=r"not what was pinned: h1:right= instead of h1:wrong="):
        gobuild.build(wrong)
    assert not gobuild.folder(wrong).exists()
    assert list((cache.root() / "bin").iterdir()) == []


def test_a_build_that_fails_names_its_log_and_leaves_nothing(module: Path) -> None:
    (module / "broken").touch()
    with pytest.raises(PartError, match=r"(?s)building tool 1.2.3 failed.*\.log.*undefined: x"):
        gobuild.build(PROGRAM)
    assert list((cache.root() / "bin").iterdir()) == []
    (module / "broken").unlink()
    assert (gobuild.build(PROGRAM) / "tool").exists()


def test_a_main_of_ours(module: Path) -> None:
    folder = gobuild.build(replace(PROGRAM, main="package main", binaries={"tool": "."}))
    assert (folder / "tool").read_text() == "built .\n"
    assert calls(module, "get") == []


def test_a_module_that_is_not_served(module: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "go").write_text("#!/bin/sh\necho 'not found: 404' >&2; exit 1\n")
    with pytest.raises(PartError, match=r"(?s)example.org/x@v1.0.0 cannot be had.*404"):
        gobuild.module_dir("example.org/x", "1.0.0")


def test_without_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys can be told without Go, since parts may also be pulled; building cannot be done."""
    monkeypatch.setattr(gobuild.shutil, "which", lambda *_, **__: None)
    assert not gobuild.has_go()
    assert PROGRAM.key
    with pytest.raises(PartError, match="Go is not installed") as caught:
        gobuild.go_command()
    assert caught.value.hint is not None
    assert "PARTS=pull" in caught.value.hint


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(PartError, match=r"has no go\.mod"):
        gobuild.build_checkout(tmp_path, {"x": "cmd/x"})


# with a real compiler

needs_go = pytest.mark.skipif(not gobuild.has_go(), reason="Go is not installed")

_MAIN = 'package main\n\nfunc main() { println("hello") }\n'


@pytest.fixture
def go_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled standard library of this machine's Go, so that no test compiles it again."""
    env = gobuild.go_env()
    usual = Path.home() / ".cache" / "muster" / "go" / "build"
    if usual.is_dir():
        monkeypatch.setattr(gobuild, "go_env", lambda: {**env, "GOCACHE": str(usual)})


@needs_go
@pytest.mark.usefixtures("go_cache")
def test_a_file_is_really_built() -> None:
    folder = gobuild.build_file("hello", _MAIN)
    assert [path.name for path in folder.iterdir()] == ["hello"]
    done = subprocess.run([folder / "hello"], capture_output=True, text=True, check=True)
    assert done.stderr == "hello\n"
    assert gobuild.build_file("hello", _MAIN) == folder
    assert gobuild.build_file("hello", _MAIN.replace("hello", "bye")) != folder


@needs_go
@pytest.mark.usefixtures("go_cache")
def test_a_checkout_is_really_built_anew_each_time(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "cmd").mkdir(parents=True)
    (source / "go.mod").write_text("module example.org/own\n\ngo 1.21\n")
    (source / "cmd" / "main.go").write_text(_MAIN)
    built = gobuild.build_checkout(source, {"own": "./cmd"})
    (source / "cmd" / "main.go").write_text(_MAIN.replace("hello", "changed"))
    assert gobuild.build_checkout(source, {"own": "cmd"}).parent == built.parent
    again = gobuild.build_checkout(source, {"own": "./cmd"})
    done = subprocess.run([again / "own"], capture_output=True, text=True, check=True)
    assert done.stderr == "changed\n"
    (source / "cmd" / "main.go").write_text("package main\nfunc main() { x }\n")
    with pytest.raises(PartError, match="undefined: x"):
        gobuild.build_checkout(source, {"own": "./cmd"})


def test_the_real_go_is_found_or_not() -> None:
    assert gobuild.has_go() is (
        (shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")) is not None
    )
