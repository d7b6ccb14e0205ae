# sless: `make demo` shows the main job, `make test` runs every test. Both install what they need (tools/setup.sh).
SHELL := /bin/bash
.DEFAULT_GOAL := help
CACHE ?= $(or $(SLESS_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sless)
export PATH := $(CACHE)/bin:$(PATH)
JOBS ?= $(shell nproc)
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format) clang-format-14)

.PHONY: help setup build demo test unit acceptance layering lint format docs bench clean

help:       ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

setup:      ## install what building, running and testing needs
	@tools/setup.sh

build: setup ## build/bin: terraform-provider-sless, slessd, sless-runner (release)
	@cmake --preset release >/dev/null
	@[ -x build/bin/slessd ] || echo "build: the release build (6 minutes or so on 2 cores, the first time)"
	@cmake --build build -j $(JOBS)

demo: build ## apply examples/quickstart on a slessd of its own, call it, change it, destroy it
	@python3 tools/demo.py

test: build ## every test: unit and fuzz (with sanitizers), layering, docs, acceptance
	@cmake --preset dev >/dev/null
	@[ -d build/dev/tests/fuzz ] || echo "test: the build with sanitizers (15 minutes or so on 2 cores, the first time), then the tests (8 minutes)"
	@cmake --build build/dev -j $(JOBS) --target unit_tests
	@python3 tests/run.py

unit: setup ## unit tests alone, with sanitizers
	@cmake --preset dev >/dev/null
	@cmake --build build/dev -j $(JOBS) --target unit_tests
	@python3 tests/run.py unit

acceptance: build ## acceptance tests alone, with the real terraform
	@python3 tests/run.py acceptance

layering:   ## who includes whom; CMake and the map of docs/architecture.md agree
	@python3 tests/layering/check_includes.py
	@python3 tests/layering/check_map.py

format:     ## clang-format over the tree (clang-format 14)
	@git ls-files '*.h' '*.cc' | xargs $(CLANG_FORMAT) -i

lint: layering ## formatting and layering, changing nothing
	@git ls-files '*.h' '*.cc' | xargs $(CLANG_FORMAT) --dry-run -Werror

docs: build ## registry pages from the schemas
	@build/bin/docsgen .

bench: build ## start of the provider, many resources, serving; in turns with peers (needs go, npm, wrk)
	@python3 tests/bench/plugin_start.py build/bin/terraform-provider-sless build/bin/terraform-provider-hello --build-peer --limit-ms 10 --limit-mb 12
	@python3 tests/bench/many_resources.py
	@python3 tests/bench/serving.py

clean:      ## the build folder
	@rm -rf build
