# muster: `make help` lists the targets. Each ends with one line that says how it ended:
# result: ok | behaviours | usage | infrastructure

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/muster
PY := .venv/bin/python
READY := .venv/.ready
export UV_CACHE_DIR := $(CACHE)/uv
export UV_PYTHON_DOWNLOADS ?= never
# some images forbid compiled modules, and each of the many Pythons started here pays a second for it
unexport PYTHONDONTWRITEBYTECODE

# options for the suites, e.g. make e2e ARGS="--torch 1.10.2 -k G04"
ARGS ?=

# run a command, then say how it ended; make itself can only pass on "failed"
define verdict
code=0; { $(1); } || code=$$?; $(PY) -m reports result $$code
endef

# of make chaos
MINUTES ?= 20
# storms that are blown at most to find a shorter one that fails in the same way
SHRINK ?= 6
SEED ?=

.PHONY: help setup e2e suites test unit pages lint smoke prove experiments faults chaos compat bench doctor report clean lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## the virtualenv, with everything pinned in requirements.txt

$(READY): requirements.txt pyproject.toml
	@python=$$(.ci/python); \
	[ -x $(PY) ] || { echo "making .venv with $$python"; "$$python" -m venv .venv; }; \
	$(PY) -m uv --version >/dev/null 2>&1 || \
		$(PY) -m pip install --quiet --disable-pip-version-check "$$(grep -o '^uv==[^ ]*' requirements.txt)"; \
	$(PY) -m uv pip sync --quiet --compile-bytecode --python $(PY) requirements.txt; \
	$(PY) -m uv pip install --quiet --python $(PY) --no-deps --editable .; \
	touch $(READY)

e2e: $(READY) ## nine behaviours on a real kind cluster (sets up all it needs; cold: half an hour)
	@$(call verdict,$(PY) -m pytest suites -m e2e $(ARGS))

suites: $(READY) ## all behaviours of the catalogue, or those of ARGS="-k G06"
	@$(call verdict,$(PY) -m pytest suites $(ARGS))

test: lint unit pages smoke ## what .ci/run runs: lint, unit tests, pages, one real small cluster

unit: $(READY) ## tests of the harness that need no cluster
	@$(call verdict,$(PY) -m pytest tests -m "not smoke and not proof and not faults and not browser" \
		-q -n 4 --dist worksteal)

pages: $(READY) ## the pages in a headless Chromium, where there is one
	@$(call verdict,$(PY) -m pytest tests/browser -q)

smoke: $(READY) ## one real small kind cluster
	@# -s: the first time it builds for a quarter of an hour, and says what
	@$(call verdict,$(PY) -m pytest tests/smoke -m smoke -q -s)

lint: $(READY) ## ruff, mypy, imports between rooms
	@$(call verdict,.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports)

prove: $(READY) ## breaks real systems on purpose, and shows that the harness says so (half an hour)
	@$(call verdict,$(PY) -m pytest tests/proofs -m proof -q $(ARGS))

experiments: $(READY) ## what becomes of jobs while things break: chaos/experiments, a test each (1 h)
	@$(call verdict,$(PY) -m pytest suites/chaos --topology gpu-2x4 $(ARGS))

faults: $(READY) ## every fault on a real cluster: injected, proven, undone, all as before (30 min)
	@$(call verdict,$(PY) -m pytest tests/faults -m faults -q $(ARGS))

chaos: $(READY) ## a storm of random jobs and faults: make chaos MINUTES=20 SEED=n (SHRINK=0)
	@$(call verdict,$(PY) -m chaos storm --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) \
		--shrink $(SHRINK) $(ARGS))

compat: $(READY) ## the elastic suite on seven PyTorch versions, and the report (resumable; FULL=1)
	@$(call verdict,$(PY) -m fixtures.matrix $(if $(FULL),--full) $(ARGS))

bench: $(READY) ## the figures of the README, as ratios measured in one run
	@$(call verdict,$(PY) -m tests.bench.bench $(ARGS))

doctor: $(READY) ## what this machine has, lacks, and how to get it
	@$(call verdict,$(PY) -m clusters doctor)

report: $(READY) ## pages of the last run: out/latest/report.html, and Allure's where Node is there
	@$(call verdict,$(PY) -m reports build out/latest && $(PY) -m reports allure out/latest)

clean: $(READY) ## remove all clusters, stop our Docker engine; the cache stays
	@$(call verdict,$(PY) -m clusters clean)

lock: $(READY) ## pin requirements.txt anew after a change of pyproject.toml
	@$(PY) -m uv pip compile --quiet --no-emit-index-url --no-header --generate-hashes \
		--python-version 3.12 --universal --group dev pyproject.toml -o requirements.txt
