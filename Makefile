# make demo: the main job. make test: everything that CI checks. make quick: the tests nearest to what changed, in 90
# seconds. make slow: those that the default suite leaves out. make docs: the site, into out/site, with its links checked.
# Each sets up a fresh machine by itself.
# Tests start many processes, which find bytecode even where Python is told to write none.
# Needs python3 (3.10 to 3.13) with venv, and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# types and suite: parts of test, side by side, since mypy has one process.
.PHONY: demo test types suite quick slow docs clean

demo: $(STAMP)
	$(BIN)/python examples/hopper_gemm.py

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m compileall -q -j 2 -x '/test_[^/]*\.py' numba_cute tests examples benchmarks
	$(MAKE) --no-print-directory -j 2 types suite

types: $(STAMP)
	$(BIN)/mypy

suite: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadscope

quick: $(STAMP)
	$(BIN)/python -m tests.quick

slow: $(STAMP)
	$(BIN)/python -m tests.slow

docs: $(STAMP)
	$(BIN)/python -m pip install -q --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q -e ".[cu13]" --group test
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info out .pytest_cache .ruff_cache .mypy_cache .hypothesis
