# Two commands: `make reproduce` and `make test`. Each first installs into .venv what it needs, from the pinned constraints.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
CORES ?= all
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: reproduce test cluster lint format benchmark regression report docs pictures clean

# The ending is printed here rather than by Snakemake, so that it comes last, and also when there was nothing to do.
reproduce: $(READY)
	snakemake --cores $(CORES) --no-hooks
	@unlearn claims --brief

# Two workers of one thread each: threads of several processes wait for each other.
test: $(VENV)/.ready-test
	OMP_NUM_THREADS=1 pytest --numprocesses 2 --dist loadfile

# SLURM on several nodes, PostgreSQL, SSH and S3, started by the scripts of a directory: UNLEARNING_SCALE=... make cluster
cluster: $(VENV)/.ready-cluster
	OMP_NUM_THREADS=1 pytest tests/workflow/test_cluster.py tests/workflow/test_servers.py

lint: $(VENV)/.ready-lint
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(VENV)/.ready-lint
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

benchmark: $(READY)
	python benchmarks/engine.py
	python benchmarks/softmax.py

# The smoke preset against its committed baselines: records by statistical tolerance, claims by verdict.
regression: $(READY)
	snakemake --cores $(CORES) --config preset=smoke
	@status=0; unlearn regression --preset smoke || status=1; unlearn claims --preset smoke --check || status=1; exit $$status

report: $(READY)
	snakemake --report report.html

docs: $(VENV)/.ready-docs
	sphinx-build -W docs site

# The documents' pictures, from a run of the default preset and from the tutorial's code; then see what git says.
pictures: $(VENV)/.ready-docs
	snakemake --cores $(CORES) --no-hooks --config preset=digits
	python -m docs.gallery

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[workflow,images]"
	unlearn schema
	touch $@

# What only tests, linters and documentation need.
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
