# One list of commands for people and for CI. `make run` and `make test` set everything up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUST_SOURCES := $(shell find src benches tests -name '*.rs') Cargo.toml Cargo.lock data/default.fdx

.PHONY: run test test-rust test-python format lint types docs bench imdb lock clean

run: $(STAMP)
	@echo "I would like to book a table for two at the restaurant near the station." \
		| $(BIN)/fastdx privatize --epsilon 3

test: test-rust test-python

test-rust:
	cargo test --locked --release

test-python: $(STAMP)
	$(BIN)/python -m pytest

format:
	cargo fmt --check
	$(BIN)/ruff format --check python tests benches tools

lint: $(STAMP)
	cargo clippy --locked --release --all-targets -- -D warnings
	cargo clippy --locked --release --features python -- -D warnings
	$(BIN)/ruff check python tests benches tools

types: $(STAMP)
	$(BIN)/mypy
	cd $(VENV) && bin/python -m mypy.stubtest fastdx --mypy-config-file ../pyproject.toml

docs: $(STAMP)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --release

bench: $(STAMP)
	cargo bench --locked
	$(BIN)/pip install --quiet -r benches/requirements.txt
	$(BIN)/python benches/peers.py

# IMDB=files…: other JSONL files with a field "text".
imdb: $(STAMP)
	$(BIN)/python benches/imdb.py $(IMDB)

$(VENV)/.made: requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(STAMP): $(VENV)/.made $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

lock:
	$(PYTHON) -m pip install --quiet pip-tools
	$(PYTHON) -m piptools compile --quiet --strip-extras --no-annotate --no-emit-find-links \
		-o requirements-dev.txt requirements-dev.in
	cargo update

clean:
	rm -rf target $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache
