# Needs Python 3.11 or newer and make. The first target that needs it builds .venv; after that everything starts at once.
#   make demo                              with the first python3
#   make test PYTHON=python3.12 VENV=.venv-3.12
#   make test ARGS="tests/cli -x"

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
AUDIT := .venv-audit

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test check format soak bench pyodide audit bill clean $(VENV)

help:  ## show this list
	@grep -hE '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV): $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed; try: make PYTHON=python3.12'; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing into $(VENV) (a few minutes, once)'
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

demo: $(STAMP)  ## watch a LangChain and a LlamaIndex agent fix a bug with the same tools, offline
	@$(BIN)/toolkit demo $(ARGS)

test: $(STAMP)  ## run the test suite
	@$(BIN)/python -m pytest $(ARGS)

check: $(STAMP)  ## format, lint, types and import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

format: $(STAMP)  ## put the code into shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

soak: $(STAMP)  ## run the test suite with every soak at full length
	@SOAK=1 $(BIN)/python -m pytest --timeout 3600 $(ARGS)

bench: $(STAMP)  ## measure; the numbers are of this machine
	@$(BIN)/python -m benchmarks $(ARGS)

pyodide: $(STAMP)  ## run tests/neutral in Pyodide, and two tools in a page, without the host
	@$(BIN)/python -m tests.pyodide

audit: $(STAMP)  ## look the pinned versions up in an advisory database (needs the network)
	@test -x $(AUDIT)/bin/pip-audit || { $(PYTHON) -m venv $(AUDIT) && $(AUDIT)/bin/pip install --quiet pip-audit; }
	@$(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

bill: $(STAMP)  ## write sbom.cdx.json anew
	@$(BIN)/python -m tests.bill --write

clean:  ## remove what was built
	@rm -rf $(VENV) $(AUDIT) .pyodide dist build .pytest_cache .ruff_cache .hypothesis
