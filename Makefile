# make demo    export AlexNet, run it in ONNX Runtime, check it against eager PyTorch
# make test    run the tests
# make test-long  every classification model of torchvision (11 minutes)
# make check   format, lint, types, walls between the stages
# make bench   export speed and latency against torch.onnx.export (long)
# Each makes the environment in .venv first, if it is not there yet.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

.PHONY: demo test test-long check bench clean environment

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: export OMP_NUM_THREADS ?= 1
test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-long: export OMP_NUM_THREADS ?= 1
test-long: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m long tests/long

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks.export_speed
	$(BIN)/python -m benchmarks.latency

environment: $(STAMP)

$(STAMP): requirements-test.txt pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) # pip comes last: a venv that was cut short is made again
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
