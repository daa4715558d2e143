# make train   make test   make docs   — each installs what it needs into .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Given as variables, the exact versions hold for what builds the package too.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check
# Some containers set it. Then each of the many processes that the tests start compiles all it imports.
export PYTHONDONTWRITEBYTECODE :=

# A copy that was installed, as by `pip install .`, would not follow edits: install again.
IS_COPY := $(shell $(BIN)/python -Ic "import os, pixelpong; \
	print(not os.path.samefile(os.path.dirname(pixelpong.__file__), 'src/pixelpong'))" 2>/dev/null)
ifeq ($(IS_COPY),True)
$(shell rm -f $(VENV)/core $(VENV)/dev $(VENV)/docs)
endif

.PHONY: help train test docs peers soak quick lint verify bench clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

train: $(VENV)/core  ## install, and train an agent: make train ARGS="--seed 3"
	$(BIN)/pixelpong train $(ARGS)

test: $(VENV)/dev  ## install, check style and types, run all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not peers and not soak" $(ARGS)
	@# Compiled code with the bounds of its arrays checked, in a cache of its own.
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/bounds $(BIN)/python -m pytest -n auto tests/learning/test_kernels.py tests/learning/test_bounds.py tests/envs/test_states.py tests/envs/test_several_games.py tests/learning/test_any_game.py tests/sight

docs: $(VENV)/docs  ## install, run the notebooks, build the site: docs/_build/html/index.html
	PYTHONUTF8=1 $(BIN)/python -m sphinx -b html -W --keep-going -n -q docs docs/_build/html $(ARGS)
	@# No page asks for anything from elsewhere.
	@! grep -rEni --include=*.html --include=*.css "<(script|img|iframe|video|audio|source|embed|object|link)[^>]* (src|href|data) *= *[\"']?(https?:)?//|@import +[\"']?(https?:)?//|url\([\"']?(https?:)?//" docs/_build/html

peers: $(VENV)/dev  ## test the examples with stable-baselines3; installs PyTorch
	$(PIP) -e ".[peers]"
	@# One thread, so that cores that are busy elsewhere make no difference.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/whole/test_peers.py \
		tests/envs/test_stable_baselines.py tests/envs/test_makers.py $(ARGS)

soak: $(VENV)/dev  ## the long part of the fault suite, hours: make soak ARGS="-k memory"
	$(BIN)/python -m pytest -m soak $(ARGS)

quick: $(VENV)/dev  ## the tests that take less than half a second each, without Ray, half a minute
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not browser and not ray and not peers and not soak" $(ARGS)

lint: $(VENV)/dev  ## mend style where it can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

verify: $(VENV)/core  ## same seed, same bits: compare engines, workers, stops
	$(BIN)/pixelpong verify $(ARGS)

bench: $(VENV)/core  ## steps per second against bare ALE, make bench ARGS="..."
	$(BIN)/python benchmarks/throughput.py $(ARGS)

clean:  ## remove .venv, caches and the site, never runs
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pixelpong needs Python 3.11 or newer, and this is $$($(PYTHON) --version); try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c "import platform, sys, sysconfig as s; sys.exit('musl' in str(s.get_config_var('SOABI')) or \
		(sys.platform, platform.machine()) == ('darwin', 'x86_64'))" || \
		{ echo "pixelpong cannot be installed here: Intel Macs and Alpine Linux have no packages of its compiler, \
	llvmlite; on a Mac with Apple silicon, use a Python for arm64"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo "$(PYTHON) cannot make virtual environments; \
	on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/core: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) -e .
	@touch $@

# Most of this is never imported: what is, Python compiles then.
$(VENV)/dev: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) --no-compile -e ".[dev]"
	@touch $@ $(VENV)/core $(VENV)/docs

$(VENV)/docs: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) -e ".[all,docs]"
	@touch $@ $(VENV)/core
