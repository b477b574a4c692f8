# Needs Python 3.11 or newer and make, nothing else. `make` lists the targets.
# One environment (.venv) grows as targets need it; it is refreshed only when pyproject.toml changes.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
# Each worker starts with a run of neighbouring tests, whose fixtures it makes once, and takes over from others at the end.
WORKERS = -n $(JOBS) --dist worksteal
PYTEST_FLAGS ?=
SEEDS ?= $(shell seq 1 20)
MUTANTS ?=
PYTHONS ?= 3.11 3.12 3.13 3.14
# What every version of Python and of a library must pass: the core and its commands, without the long theorem checks.
# Not tests/guarantees: its saved digits are those of current NumPy and SciPy, older ones differ from the seventh on.
CORE_TESTS := tests/core tests/mechanisms tests/sums tests/kmeans/test_kmeans_estimator.py tests/designs/test_pps.py \
  tests/cli/test_amplify.py tests/cli/test_verify.py tests/cli/test_failures.py tests/test_public_names.py

# Two workers with two BLAS threads each wait for one another: one thread is several times faster on two cores.
export OPENBLAS_NUM_THREADS ?= 1
# A process keeps the memory of large arrays (glibc gives it back after every operation, and gets it again page by page).
export MALLOC_MMAP_THRESHOLD_ ?= 268435456
export MALLOC_TRIM_THRESHOLD_ ?= 1073741824
# Bytecode is kept, whatever the shell says: compiling tests anew takes each worker 15 s, and each process that they
# start two thirds longer.
unexport PYTHONDONTWRITEBYTECODE
# Temporary files lie in memory where there is room (1 GB): stores and samples are flushed to the disk thousands of times.
IN_MEMORY := $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 1000000 2>/dev/null && echo /dev/shm)
ifneq ($(IN_MEMORY),)
export PYTEST_DEBUG_TEMPROOT ?= $(IN_MEMORY)
endif

BIN := $(VENV)/bin
# Sets $python to an interpreter of $version, or to nothing; one on the path counts, or one of pyenv's.
FIND_PYTHON = python=; for found in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python; do \
  if "$$found" -c '' 2>/dev/null; then python="$$found"; fi; done
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:  # two installs into one environment would fight
.PHONY: help demo test test-all soak mutants test-lowest test-pythons test-fast test-torch test-adapters test-peers test-spark test-app lint types docs dist coverage bench clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.demo  ## install the package and run its demo
	$(BIN)/privamp demo

test: $(VENV)/.test  ## every test but the slow ones (JOBS=2 workers, PYTEST_FLAGS="-k name")
	$(BIN)/python -m pytest $(WORKERS) -m "not slow" $(PYTEST_FLAGS)

test-all: $(VENV)/.test  ## every test
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_FLAGS)

soak: $(VENV)/.test  ## the property tests with random examples, once per seed (SEEDS="1 2 3")
	@set -eu; for seed in $(SEEDS); do echo "== seed $$seed"; \
	$(BIN)/python -m pytest $(WORKERS) -m hypothesis --hypothesis-profile=search --hypothesis-seed=$$seed $(PYTEST_FLAGS) tests; done

mutants: $(VENV)/.test  ## random mutations of the rooms that decide privacy, each against its room's tests (MUTANTS="--rooms sums --count 5")
	$(BIN)/python tests/mutants/run.py $(MUTANTS)

test-lowest: $(VENV)-lowest/.lowest  ## the core's tests with the lowest versions that pyproject.toml allows
	$(VENV)-lowest/bin/python -m pytest $(WORKERS) -m "not slow" $(PYTEST_FLAGS) $(CORE_TESTS)

test-pythons:  ## the core's tests on every Python that is found here (PYTHONS="3.11 3.12 3.13 3.14")
	@set -eu; for version in $(PYTHONS); do $(FIND_PYTHON); \
	  if [ -n "$$python" ]; then \
	    echo "== Python $$version"; \
	    "$$python" -m venv $(VENV)-$$version; \
	    $(VENV)-$$version/bin/python -m pip --disable-pip-version-check --quiet install -e ".[test]"; \
	    $(VENV)-$$version/bin/python -m pytest $(WORKERS) -m "not slow" $(PYTEST_FLAGS) $(CORE_TESTS); \
	  else \
	    echo "== Python $$version is not found here: skipped"; \
	  fi; \
	done

test-fast: $(VENV)-fast/.fast  ## private k-means and noise with their compiled passes, in an environment of their own with numba
	$(VENV)-fast/bin/python -m pytest $(WORKERS) -m "not slow" $(PYTEST_FLAGS) tests/kmeans tests/chance/test_compiled_normals.py

# Not by importorskip alone: without these libraries tests of other people's models, loops and GPU kernels would be skipped.
test-torch: $(VENV)-torch/.torch  ## the tests of privamp.torch, in an environment of their own with torch, Opacus, Hugging Face, Lightning and Triton
	$(VENV)-torch/bin/python -c "import opacus, transformers, peft, accelerate, lightning, triton"
	$(VENV)-torch/bin/python -m pytest $(WORKERS) $(PYTEST_FLAGS) tests/torch tests/adapters tests/test_docs_tutorials.py src/privamp/torch src/privamp/adapters/torch.py

test-adapters: $(VENV)-adapters/.adapters  ## the tests of privamp.adapters, with dp-accounting, OpenDP and JAX Privacy (Opacus: test-torch)
	$(VENV)-adapters/bin/python -m pytest $(WORKERS) $(PYTEST_FLAGS) tests/adapters

# Not by importorskip alone: a library that cannot be imported is a failure here.
test-peers: $(VENV)-peers/.peers  ## values and bounds beside prv_accountant, autodp and PLD_accounting, and their times
	$(VENV)-peers/bin/python -c "import prv_accountant, autodp, PLD_accounting"
	$(VENV)-peers/bin/python -m pytest $(WORKERS) $(PYTEST_FLAGS) tests/peers/test_cross_checks.py
	$(VENV)-peers/bin/python benchmarks/peers.py

test-spark: $(VENV)-spark/.spark  ## the tests of privamp.spark, in an environment of their own with PySpark; needs Java 17
	$(VENV)-spark/bin/python -m pytest $(PYTEST_FLAGS) tests/spark src/privamp/spark

test-app: $(VENV)-app/.app  ## the tests of the explorer in a real browser, with NiceGUI and Playwright; needs Chromium
	$(VENV)-app/bin/python -m pytest $(PYTEST_FLAGS) tests/app src/privamp/app "tests/cli/test_examples_in_help.py::test_examples_work[serve]"

lint: $(VENV)/.test  ## ruff, rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## mypy, strict
	$(BIN)/mypy

docs: $(VENV)/.docs  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

dist: $(VENV)/.test  ## build sdist and wheel, then try both in fresh environments of every Python that is found here
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	@set -eu; files="$$(pwd)/$$(ls dist/*.whl) $$(pwd)/$$(ls dist/*.tar.gz)"; scratch="$$(mktemp -d)"; trap 'rm -rf "$$scratch"' EXIT; \
	for version in $(PYTHONS); do $(FIND_PYTHON); \
	  if [ -z "$$python" ]; then echo "== Python $$version is not found here: skipped"; continue; fi; \
	  for file in $$files; do \
	    echo "== Python $$version: $${file##*/}"; rm -rf "$$scratch"/*; \
	    "$$python" -m venv "$$scratch/fresh"; \
	    "$$scratch/fresh/bin/python" -m pip --disable-pip-version-check --quiet install "$$file"; \
	    (cd "$$scratch"; fresh/bin/privamp --version; fresh/bin/privamp demo; fresh/bin/privamp theorem poisson-1 > theorem.txt); \
	  done; \
	done

coverage: $(VENV)/.test  ## which lines the tests reach, printed (PYTEST_FLAGS as for test)
	$(PIP) install "pytest-cov>=5"
	$(BIN)/python -m pytest $(WORKERS) -m "not slow" --cov=privamp --cov-report=term:skip-covered $(PYTEST_FLAGS)

bench: $(VENV)/.test  ## run every benchmark
	@set -eu; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

clean:  ## remove everything make has built, the environment too
	rm -rf $(VENV) $(VENV)-lowest $(addprefix $(VENV)-,$(PYTHONS)) $(VENV)-fast $(VENV)-torch $(VENV)-adapters $(VENV)-peers $(VENV)-spark $(VENV)-app build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "privamp needs Python 3.11 or newer; $(PYTHON) is older or missing. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.created
	$(PIP) install -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.created
	$(PIP) install -e ".[test]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.created
	$(PIP) install -e ".[docs]"
	@touch $@

$(VENV)-fast/.fast: pyproject.toml
	$(PYTHON) -m venv $(VENV)-fast
	$(VENV)-fast/bin/python -m pip --disable-pip-version-check --quiet install -e ".[fast,test]"
	@touch $@

$(VENV)-lowest/.lowest: pyproject.toml constraints/lowest.txt
	rm -rf $(VENV)-lowest
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check --quiet install -c constraints/lowest.txt -e ".[test]"
	@touch $@

$(VENV)-torch/.torch: pyproject.toml constraints/torch.txt
	$(PYTHON) -m venv $(VENV)-torch
	$(VENV)-torch/bin/python -m pip --disable-pip-version-check --quiet install -c constraints/torch.txt -e ".[torch,test]" transformers peft accelerate lightning triton
	@touch $@

$(VENV)-adapters/.adapters: pyproject.toml
	$(PYTHON) -m venv $(VENV)-adapters
	$(VENV)-adapters/bin/python -m pip --disable-pip-version-check --quiet install -e ".[opendp,jax,test]"
	@touch $@

$(VENV)-peers/.peers: pyproject.toml constraints/peers.txt
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip --disable-pip-version-check --quiet install -c constraints/peers.txt -e ".[test]" prv_accountant autodp PLD_accounting
	@touch $@

$(VENV)-app/.app: pyproject.toml
	$(PYTHON) -m venv $(VENV)-app
	$(VENV)-app/bin/python -m pip --disable-pip-version-check --quiet install -e ".[app,test]" "playwright>=1.50"
	@touch $@

$(VENV)-spark/.spark: pyproject.toml
	$(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/python -m pip --disable-pip-version-check --quiet install -e ".[spark,test]"
	@touch $@
