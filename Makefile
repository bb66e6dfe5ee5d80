# Every target makes .venv and installs what it needs; `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
USED := .venv/.used
DEVELOPED := .venv/.developed

.PHONY: help test check format bench-classical bench-overhead bench-copies bench-large clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(USED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) torch numpy scipy
	$(INSTALL) --editable '.[experiments]'
	touch $@

$(DEVELOPED): $(USED)
	$(INSTALL) --editable '.[dev]'
	touch $@

test: $(DEVELOPED)  ## run the tests
	$(BIN)/pytest --numprocesses 2

check: $(DEVELOPED)  ## lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

format: $(DEVELOPED)  ## format the code and mend what the linter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench-classical: $(DEVELOPED)  ## problems solved on the classical set, next to SciPy
	$(BIN)/python benchmarks/classical.py

bench-overhead: $(DEVELOPED)  ## time per iteration outside the objective, next to torch.optim.LBFGS
	$(BIN)/python benchmarks/overhead.py

bench-copies: $(DEVELOPED)  ## cost of the flat vector under the torch.optim front
	$(BIN)/python benchmarks/flat_copies.py

bench-large: $(DEVELOPED)  ## ten steps over 1e8 parameters, with their memory (7 GiB, one minute)
	$(BIN)/python benchmarks/large.py

clean:  ## remove what the targets made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
