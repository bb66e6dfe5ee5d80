# Every target makes .venv and installs what it needs; `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
USED := .venv/.used
DEVELOPED := .venv/.developed

.PHONY: help test check format bench-classical bench-overhead fuzz-readers clean

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

fuzz-readers: $(DEVELOPED)  ## 100,000 mutated data files, read as scikit-learn and NumPy do or refused
	$(BIN)/python benchmarks/fuzz_readers.py

clean:  ## remove what the targets made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
