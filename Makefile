# Every target makes .venv and installs what it needs; `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
USED := .venv/.used
DEVELOPED := .venv/.developed

.PHONY: help reproduce bench test test-kill test-faults check format bench-classical bench-overhead bench-copies \
	bench-large bench-sharded bench-first-layer bench-pinn bench-saddles bench-float32 fuzz-readers clean

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(USED): pyproject.toml setup.py constraints.txt $(wildcard src/signedstep/native/*.[ch])
	$(PYTHON) -m venv .venv
	rm -f src/signedstep/native/*.so
	$(INSTALL) torch numpy scipy
	$(INSTALL) --editable '.[experiments]'
	touch $@

$(DEVELOPED): $(USED)
	$(INSTALL) --editable '.[dev]'
	@# Only an example of a package that curvlinops needs wants torchvision; made for CUDA, it breaks Lightning's imports here.
	$(BIN)/pip uninstall --quiet --yes torchvision
	touch $@

reproduce: $(USED)  ## run the paper's experiments on the embedded data and write results/report/report.html
	$(BIN)/signedstep reproduce

bench: $(DEVELOPED)  ## our methods next to their peers on the development half; results/bench/report/bench.html
	$(BIN)/signedstep bench

test: $(DEVELOPED)  ## run the tests
	$(BIN)/pytest --numprocesses 2

test-kill: $(DEVELOPED)  ## kill a study at ten random moments and resume it
	SIGNEDSTEP_KILLS=10 $(BIN)/pytest tests/test_resume.py

test-faults: $(DEVELOPED)  ## ranks that raise, are slow, stop or are killed, 20 times each (half an hour)
	SIGNEDSTEP_FAULTS=20 $(BIN)/pytest tests/test_distributed_failures.py

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

bench-large: $(DEVELOPED)  ## ten steps over 1e8 parameters, with their memory (8 GiB, one minute)
	$(BIN)/python benchmarks/large.py

bench-sharded: $(DEVELOPED)  ## memory of sharded vectors on 1, 2 and 4 ranks, n = 1e7
	$(BIN)/python benchmarks/sharded.py

bench-first-layer: $(DEVELOPED)  ## from which density on the first layer of a network is faster dense
	$(BIN)/python benchmarks/first_layer.py

bench-pinn: $(DEVELOPED)  ## physics-informed networks, next to torch.optim.LBFGS (a quarter of an hour)
	$(BIN)/python benchmarks/pinn.py --output docs/pinn.png

bench-saddles: $(DEVELOPED)  ## which methods leave a strict saddle, and in how many evaluations, next to SciPy and torch
	$(BIN)/python benchmarks/saddles.py

bench-float32: $(DEVELOPED)  ## how low auto gets in float32, next to where rounding ends SciPy in float64 (a quarter of an hour)
	$(BIN)/python benchmarks/float32.py

fuzz-readers: $(DEVELOPED)  ## 100,000 mutated data files, read as scikit-learn and NumPy do or refused
	$(BIN)/python benchmarks/fuzz_readers.py

clean:  ## remove what the targets made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist src/signedstep/native/*.so
