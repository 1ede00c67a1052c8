# Everything a fresh clone needs: `make setup`, then `make demo`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.ONESHELL:
.SILENT:
.PHONY: help setup java demo test lint bench check-long clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
# Two test processes at most have a Spark, another has files without (tests/sharing_out.py); the longest files come first.
SHARED_OUT := -n auto --dist loadfile --no-loadscope-reorder
PYTHONS := $(PYTHON) python3.11 python3.12 python3.13 python3

help:
	echo "make setup       a virtual environment in $(VENV) with everything in it; needs Python 3.11+ and Java 17+"
	echo "make demo        the smart meter example, on Spark, in one process"
	echo "make test        style, types and tests"
	echo "make lint        style and types only"
	echo "make bench       the benchmarks"
	echo "make check-long  the tests that take minutes, within MINUTES=60; SHARD=1/2, ONLY=text and AGAIN=1 as well"
	echo "make clean       removes what these targets made"

# Sets and exports JAVA_HOME to the first Java of version 17 or later: JAVA_HOME, then PATH, then the usual folders.
define FIND_JAVA
found=
for java in "$${JAVA_HOME:+$$JAVA_HOME/bin/java}" "$$(command -v java || true)" /usr/lib/jvm/*/bin/java \
    "$$HOME"/.sdkman/candidates/java/current/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
    /opt/homebrew/opt/openjdk*/bin/java; do
    [ -n "$$java" ] && [ -x "$$java" ] || continue
    told="$$("$$java" -XshowSettings:properties -version 2>&1)" || continue
    version="$$(sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p' <<<"$$told")"
    if [ "$${version:-0}" -ge 17 ]; then found="$$(sed -n 's/^ *java\.home = //p' <<<"$$told")"; break; fi
done
if [ -z "$$found" ]; then
    {
        echo "Java 17 or later was not found: not in JAVA_HOME, not on PATH, not in the usual folders. To get it:"
        echo "    Debian, Ubuntu   sudo apt install openjdk-17-jre-headless"
        echo "    Fedora, RHEL     sudo dnf install java-17-openjdk-headless"
        echo "    macOS            brew install openjdk@17"
        echo "    anywhere         curl -s https://get.sdkman.io | bash, then: sdk install java 17.0.13-tem"
    } >&2
    exit 2
fi
export JAVA_HOME="$$found"
endef

setup: java $(STAMP)

java:
	$(FIND_JAVA)
	echo "java    $$version in $$JAVA_HOME"

$(STAMP): pyproject.toml
	if [ ! -x $(BIN)/python ]; then
	    python=
	    for one in $(PYTHONS); do
	        if "$$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python="$$one"; break; fi
	    done
	    if [ -z "$$python" ]; then
	        echo "Python 3.11 or later was not found (tried: $(PYTHONS)); name one with make setup PYTHON=/path/to/python3" >&2
	        exit 2
	    fi
	    echo "python  $$("$$python" -V) makes $(VENV)"
	    "$$python" -m venv $(VENV)
	fi
	echo "pip     installs Weft and what it needs; Spark alone is some 400 MB, so this can take minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@
	echo "ready   $(BIN)/weft"

demo: setup
	$(FIND_JAVA)
	$(BIN)/python examples/meters/demo.py

lint: setup
	echo "ruff"
	$(BIN)/ruff check src tests
	echo "mypy"
	$(BIN)/mypy

test: setup
	$(FIND_JAVA)
	$(BIN)/python -m tests.compiling >/dev/null 2>&1 & compiling=$$!
	trap 'kill "$$compiling" 2>/dev/null || true' EXIT
	$(MAKE) --no-print-directory lint
	wait "$$compiling" || echo "inner loops were not compiled ahead: python -m tests.compiling says why"
	trap - EXIT
	echo "pytest"
	$(BIN)/python -m pytest $(SHARED_OUT)

bench: setup
	$(FIND_JAVA)
	$(BIN)/weft bench

# Two minutes or two hours: what passed on this code is not done again. See `python -m tests.long --help`.
check-long: setup
	$(FIND_JAVA)
	$(BIN)/python -m tests.long --minutes $(or $(MINUTES),60) $(if $(SHARD),--shard $(SHARD)) $(if $(ONLY),--only "$(ONLY)") \
	    $(if $(AGAIN),--again)

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
