"""Go programs built from pinned modules.

A module of the Go proxy is used as an ordinary pinned dependency: a small ``go.mod`` of ours
requires it, and repeats its ``replace`` block, because Go ignores the replacements of a module
that is not the main one. Kubernetes' replacements by its staging folders become the published
modules of the same release; other local folders are dropped, since the release requires its
siblings by version.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clusters import cache
from clusters.command import run, run_logged
from clusters.errors import CommandError, PartError
from clusters.progress import step

#: seconds that one ``go build`` may take; the longest measured cold on 2 cores is 302
BUILD_TIMEOUT = 3600.0
#: held while compiling: one build uses all cores, and several at once only take them (and the
#: clusters that run beside them) each other's time
COMPILER = "go-compiler"


@dataclass(frozen=True)
class GoProgram:
    """Programs of one Go module at one version.

    Attributes:
        binaries: binary name -> package path, as ``go build`` takes it.
        sum: the module's ``h1:`` hash; a download that differs is refused.
        main: source of a ``main.go`` of ours, built as the one binary instead of a package.
        variables: ``-X`` linker variables.
        require: further modules to raise, ``path@version``.
    """

    name: str
    module: str
    version: str
    sum: str
    binaries: Mapping[str, str]
    main: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    require: Sequence[str] = ()

    @property
    def key(self) -> str:
        """Content key of everything that decides the binaries."""
        return cache.key(
            self.module, self.version, self.sum, dict(self.binaries), self.main,
            dict(self.variables), list(self.require), _go_version(),
        )  # fmt: skip


def go_command() -> str:
    """Path of the Go command. Raises PartError where there is none."""
    found = _find_go()
    if found is None:
        raise PartError(
            "Go is not installed, and parts have to be built",
            hint="install Go 1.24 or newer and put it on PATH, or use PARTS=pull",
        )
    return found


def has_go() -> bool:
    """Whether programs can be built here."""
    return _find_go() is not None


def _find_go() -> str | None:
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


def go_env() -> dict[str, str]:
    """Environment of every Go command: caches inside ours, static binaries, no other toolchain."""
    base = cache.root() / "go"
    return {
        "GOMODCACHE": str(base / "mod"),
        "GOCACHE": str(base / "build"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
    }


def module_dir(module: str, version: str, expected_sum: str = "") -> Path:
    """The unpacked source of *module*, downloaded when it is not there.

    Raises:
        PartError: not served, or not the pinned content.
    """
    try:
        text = run(
            [go_command(), "mod", "download", "-json", f"{module}@v{version}"],
            timeout=600,
            env=go_env(),
            cwd=Path("/"),
        )
    except CommandError as error:
        raise PartError(f"the Go module {module}@v{version} cannot be had: {error}") from error
    answer = json.loads(text)
    if expected_sum and answer["Sum"] != expected_sum:
        raise PartError(
            f"{module}@v{version} is not what was pinned: {answer['Sum']} instead of {expected_sum}"
        )
    return Path(answer["Dir"])


def folder(program: GoProgram) -> Path:
    """Where the binaries of *program* lie when they are built."""
    return cache.root() / "bin" / f"{program.name}-{program.version}-{program.key}"


def build(program: GoProgram) -> Path:
    """The folder with the binaries of *program*, built when it is not cached.

    Raises:
        PartError: the build failed; names the log.
    """

    def make(partial: Path) -> None:
        with step(f"build {program.name} {program.version}") as detail:
            detail("downloading")
            source = module_dir(program.module, program.version, program.sum)
            work = partial / "src"
            work.mkdir()
            log = cache.root() / "logs" / f"build-{program.name}-{program.version}.log"
            log.unlink(missing_ok=True)
            _write_module(program, source, work)
            try:
                _compile(program, work, partial, log, detail)
            except CommandError as error:
                raise PartError(
                    f"building {program.name} {program.version} failed: {error}"
                ) from error
            shutil.rmtree(work)

    return cache.published(folder(program), make)


def build_file(name: str, source: str) -> Path:
    """The folder with the binary *name*, built from one Go file that needs only Go's library."""
    target = cache.root() / "bin" / f"{name}-{cache.key(source, _go_version())}"

    def make(partial: Path) -> None:
        file = partial / "main.go"
        file.write_text(source)
        run(
            [go_command(), "build", "-trimpath", "-ldflags", "-s -w", "-o", name, "main.go"],
            timeout=BUILD_TIMEOUT, env=go_env(), cwd=partial,
        )  # fmt: skip
        file.unlink()

    return cache.published(target, make)


def build_checkout(
    source: Path, binaries: Mapping[str, str], *, detail: Callable[[str], None] | None = None
) -> Path:
    """Build *binaries* (name -> package below *source*) with the checkout's own ``go.mod``.

    Nothing is cached but by Go itself: a working tree has no content key that is cheap and right.
    Returns a folder that is made anew by each call.
    """
    if not (source / "go.mod").is_file():
        raise PartError(f"{source} has no go.mod, so it is not a checkout that can be built")
    target = cache.root() / "src-builds" / cache.key(str(source.resolve()), dict(binaries))
    log = cache.root() / "logs" / f"build-src-{target.name}.log"
    log.unlink(missing_ok=True)
    with cache.lock(f"src-{target.name}"), cache.lock(COMPILER):
        for name, package in binaries.items():
            try:
                run_logged(
                    [go_command(), "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
                     "-o", str(target / name), f"./{package.removeprefix('./')}"],
                    log, timeout=BUILD_TIMEOUT, env=go_env(), cwd=source, detail=detail,
                )  # fmt: skip
            except CommandError as error:
                raise PartError(f"building {source} failed: {error}") from error
    return target


def _write_module(program: GoProgram, source: Path, work: Path) -> None:
    upstream = json.loads(
        run([go_command(), "mod", "edit", "-json", str(source / "go.mod")], env=go_env())
    )
    lines = ["module muster.local/build", f"go {upstream['Go']}", ""]
    lines += [f"require {program.module} v{program.version}", ""]
    lines += [f"require {item.replace('@', ' ')}" for item in program.require]
    replaced = (_replace_line(item, program.version) for item in upstream.get("Replace") or [])
    lines += [line for line in replaced if line]
    (work / "go.mod").write_text("\n".join(lines) + "\n")
    if program.main is not None:
        (work / "main.go").write_text(program.main)


def _replace_line(item: dict[str, dict[str, str]], version: str) -> str | None:
    old, new = item["Old"]["Path"], item["New"]
    if new["Path"].startswith("./staging/"):  # of Kubernetes, which requires them as v0.0.0
        return f"replace {old} => {old} v0.{version.split('.', 1)[1]}"
    if new["Path"].startswith("."):  # a sibling module, required at its released version as well
        return None
    at = f" {item['Old']['Version']}" if item["Old"].get("Version") else ""
    return f"replace {old}{at} => {new['Path']} {new['Version']}"


def _compile(
    program: GoProgram,
    work: Path,
    out: Path,
    log: Path,
    detail: Callable[[str], None],
) -> None:
    (work / "tmp").mkdir()
    if program.main is None:
        packages = sorted(set(program.binaries.values()))
        tools = [f"{package}@v{program.version}" for package in packages]
        env = _building(work)
        run_logged([go_command(), "get", "-tool", *tools], log, timeout=600, env=env, cwd=work)
    detail("waiting for another build")
    with cache.lock(COMPILER):
        _link(program, work, out, log, detail)


def _link(
    program: GoProgram, work: Path, out: Path, log: Path, detail: Callable[[str], None]
) -> None:
    flags = " ".join(["-s", "-w", *(f"-X {k}={v}" for k, v in program.variables.items())])
    env = _building(work)
    go = go_command()
    common = ["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", flags]
    for name, package in program.binaries.items():
        target = package if program.main is None else "."
        run_logged(
            [go, *common, "-o", str(out / name), target],
            log, timeout=BUILD_TIMEOUT, env=env, cwd=work, detail=detail,
        )  # fmt: skip


def _building(work: Path) -> dict[str, str]:
    # in /tmp a killed build would leave gigabytes behind
    return {**go_env(), "GOFLAGS": "-mod=mod -modcacherw", "GOTMPDIR": str(work / "tmp")}


def _go_version() -> str:
    """The compiler's version; "" where there is none, so that keys can be told without one."""
    go = _find_go()
    if go is None:
        return ""
    return run([go, "version"], env={"GOTOOLCHAIN": "local"}, cwd=Path(os.sep)).split()[2]
