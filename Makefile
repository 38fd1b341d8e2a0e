# Every target sets up what it needs and nothing twice: .venv holds all of it, `make clean` removes it.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
export OMP_WAIT_POLICY := PASSIVE

.PHONY: help demo test test-slow check docs bench clean
help:            ## what there is
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 10

.venv/created:
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade pip
	@touch $@

.venv/package: .venv/created pyproject.toml constraints.txt
	@echo "Installing laplaceconfidence into .venv (once) ..."
	$(PIP) --editable '.[all]'
	@touch $@

.venv/tools: .venv/package
	@echo "Installing the test and documentation tools into .venv (once) ..."
	$(PIP) --group dev --group docs
	@touch $@

demo: .venv/package   ## set everything up and run the main job on the embedded data
	$(BIN)/laplaceconfidence demo

test: .venv/tools   ## set everything up and run the tests
	@sh tests/browser/install_chromium.sh
	$(BIN)/python -m pytest

test-slow: .venv/tools   ## train every method in the noise its paper claims (about five minutes)
	$(BIN)/python -m pytest -m slow

check: .venv/tools docs   ## style, types, layering and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 0 tests/test_layering.py

docs: .venv/tools   ## build the documentation site into docs/_build/html; warnings fail
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

bench: .venv/tools   ## measure speed, growth and quality against the peers (about an hour)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/search_methods.py --sizes 50000 --pool 50000
	$(BIN)/python benchmarks/out_of_core.py 50000
	$(BIN)/python benchmarks/planning.py --sizes 50000 --widths 64 --classes 10
	$(BIN)/python benchmarks/growing_data.py --n 50000
	$(BIN)/python benchmarks/bounded_sample.py --n 5000 --samples 1250 2500
	$(BIN)/python benchmarks/two_workers.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/report_time.py
	$(BIN)/python benchmarks/review_latency.py
	$(BIN)/python benchmarks/tables.py

clean:   ## remove .venv and what the tools leave behind
	rm -rf .venv build dist docs/_build docs/reference/api docs/reference/commands docs/reference/methods laplaceconfidence-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
