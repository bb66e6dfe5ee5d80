# Every target makes .venv and installs what it needs; `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help test check format bench-classical bench-overhead clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch numpy scipy
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

test: $(INSTALLED)  ## run the tests
	$(BIN)/pytest --numprocesses 2

check: $(INSTALLED)  ## lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

format: $(INSTALLED)  ## format the code and mend what the linter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench-classical: $(INSTALLED)  ## problems solved on the classical set, next to SciPy
	$(BIN)/python benchmarks/classical.py

bench-overhead: $(INSTALLED)  ## time per iteration outside the objective, next to torch.optim.LBFGS
	$(BIN)/python benchmarks/overhead.py

clean:  ## remove what the targets made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
