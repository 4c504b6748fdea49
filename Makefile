# Two commands: `make reproduce` and `make test`. Both set up .venv from the pinned constraints first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORES ?= all
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: reproduce test lint format benchmark regression report docs clean

reproduce: $(READY)
	snakemake --cores $(CORES)

# Two workers of one thread each: threads of several processes wait for each other.
test: $(READY)
	OMP_NUM_THREADS=1 pytest --numprocesses 2 --dist loadfile

lint: $(READY)
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(READY)
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

docs: $(READY)
	sphinx-build -W docs site

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[workflow,images,docs,test,lint]"
	touch $@

clean:
	rm -rf $(VENV) results logs benchmarks/results .snakemake
