# There are two main commands: `make reproduce` and `make test`. Each target first installs what it needs into .venv,
# from the pinned constraints.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
CORES ?= all
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: reproduce test test-quick test-all test-rest cluster lint format benchmark regression report docs pictures clean

# The last lines are printed here rather than by Snakemake, so that they come last, even if there was nothing to do.
reproduce: $(READY)
	snakemake --cores $(CORES) --no-hooks
	@unlearn claims --brief

# Parts of one test suite, selected by the markers in pyproject.toml. There are two workers with one thread each,
# because threads of several processes would wait for each other. Tests that kill processes write and synchronise a lot.
# In memory, if there is room, they take half the time.
ROOMY := $(shell df --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 { print "/dev/shm" }')
PYTEST := $(if $(ROOMY),PYTEST_DEBUG_TEMPROOT=$(ROOMY)) OMP_NUM_THREADS=1 pytest --numprocesses 2 --dist loadfile \
	$(if $(CASE_SEED),--case-seed=$(CASE_SEED))
QUICK := tests/accounting tests/certificate tests/engine tests/mechanisms

# What a change can break: at most 10 minutes.
test: $(VENV)/.ready-test
	$(PYTEST) -m "not statistical and not exhaustive and not workflow"

# While you write code: one case of each test, at most a minute. For other tests: make test-quick QUICK=tests/ledger
test-quick: $(VENV)/.ready-test
	$(PYTEST) -m "not statistical and not exhaustive and not workflow" --hypothesis-profile=quick --one-case $(QUICK)

test-all: $(VENV)/.ready-test
	$(PYTEST) --hypothesis-profile=full

# What `make test` leaves out, if both use the same CASE_SEED; the two together are `make test-all`.
test-rest: $(VENV)/.ready-test
	$(PYTEST) -m "statistical or exhaustive or workflow or hypothesis" --hypothesis-profile=full

# SLURM on several nodes, PostgreSQL, SSH and S3, started by the scripts in a directory: UNLEARNING_SCALE=... make
# cluster
cluster: $(VENV)/.ready-cluster
	OMP_NUM_THREADS=1 pytest tests/workflow/test_cluster.py tests/workflow/test_servers.py

lint: $(VENV)/.ready-lint
	ruff check .
	ruff format --check .
	mypy
	vulture
	python -m tests.words
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(VENV)/.ready-lint
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

benchmark: $(READY)
	python benchmarks/engine.py
	python benchmarks/softmax.py

# Compares the smoke preset with its committed baselines: records with a statistical tolerance, claims by verdict.
regression: $(READY)
	snakemake --cores $(CORES) --config preset=smoke
	@status=0; unlearn regression --preset smoke || status=1; unlearn claims --preset smoke --check || status=1; exit $$status

report: $(READY)
	snakemake --report report.html

docs: $(VENV)/.ready-docs
	sphinx-build -W docs site

# The pictures in the documents, from a run of the default preset and from the code of the tutorial and the examples;
# afterwards, check the changes with git.
pictures: $(VENV)/.ready-docs
	snakemake --cores $(CORES) --no-hooks --config preset=digits
	python -m docs.gallery

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[workflow,images]"
	unlearn schema
	touch $@

# Only tests, linters and the documentation need these packages.
$(VENV)/.ready-test: $(READY)
	$(INSTALL) --editable ".[docs,test]"
	touch $@

$(VENV)/.ready-cluster: $(VENV)/.ready-test
	$(INSTALL) --editable ".[cluster,servers]" "moto[server]"
	touch $@

$(VENV)/.ready-lint: $(READY)
	$(INSTALL) --editable ".[lint]"
	touch $@

$(VENV)/.ready-docs: $(READY)
	$(INSTALL) --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) results logs benchmarks/results .snakemake
