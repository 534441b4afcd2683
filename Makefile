# Switchboard's commands; `make` alone lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run test lint bench load growth claims faults fuzz mutants build deploy destroy released-tables organization budgets catalogue catalogue-import clean

VENV := .venv/bin
# Arguments for the local stack: make run ARGS="--port-base 5000 --no-demo"
ARGS ?=
# Of each part of the tests; three parts run side by side.
TEST_THREADS ?= 4
# .ci/run replaces both, so that lints, pages and tests share one build.
CLIPPY ?= cargo clippy --workspace --all-targets -- -D warnings
PAGES ?= cargo doc --workspace --no-deps --document-private-items
# make bench ALL=1 measures every function.
ALL ?=
# make bench REPORT=1 writes its figures into docs/performance.md.
REPORT ?=
# Of make fuzz, for each target.
SECONDS ?= 60

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'make run ARGS="--help" lists the options of the local stack;'
	@echo 'make deploy needs CODE_BUCKET=name and reads infra/deploy.parameters: infra/deploy --help'

# Looks for Python and the default ports before the build. With ARGS, which may choose others, the stack names a taken port afterwards.
PORTS_TAKEN = import socket, sys; taken = [port for port in (*range(4500, 4509), 4566) if not socket.socket().connect_ex(("127.0.0.1", port))]; \
	sys.exit(f"port {taken[0]} of 127.0.0.1 is taken, perhaps by another stack: end it, or choose others with ARGS=--port-base=5000" if taken else 0)

# Builds all members at once, as the stack does for its functions, so that every crate is built once.
run: ## start the whole system on this machine and play the main job once
	@[ -x target/debug/local ] || echo 'The first start compiles everything (5 to 10 minutes) and installs a local AWS in .venv (1 minute); later ones take half a minute.'
	@infra/local/make-venv
	@$(if $(ARGS),,$(VENV)/python -c '$(PORTS_TAKEN)')
	cargo build --workspace --bins
	@cargo run --quiet --bin local -- $(ARGS)

test: ## every test, the end-to-end test on the local stack included; every benchmark once
	infra/local/make-venv
	tests/mcp_client/install
	tests/chat_clients/install
	tests/benches/node/install
	RUST_TEST_THREADS=$(TEST_THREADS) tests/run

lint: ## formatting, clippy, documentation, template, licences, advisories, and the plainness of comments and pages
	cargo fmt --all --check
	$(CLIPPY)
	RUSTDOCFLAGS='-D warnings' $(PAGES)
	infra/local/make-venv
	$(VENV)/cfn-lint infra/template.yaml
	infra/local/make-venv .venv-lint infra/lint/requirements.txt
	.venv-lint/bin/python infra/lint/template
	infra/lint/dependencies
	infra/lint/prose

claims: ## how well a real model finds the claims of agents that no tool proves: precision and recall (LLM_API_KEY=…, LLM_MODEL=…, LLM_URL=…)
	@cargo run --quiet -p tests --example claims

# The functions are measured in their release build; the measuring program has the profile of the tests. ALL=1 leaves out two benchmarks:
# cargo bench -p tests --bench query --bench call_start.
bench: ## the parser's speed; CPU, memory and size of execute, call-start, list-tools and run-loop, beside Node (8 minutes; ALL=1: of every function, the shared crate and streams, 30; REPORT=1: into docs/performance.md)
	tests/benches/node/install
	cargo bench -p tool-calls --bench parser
	cargo bench --workspace --bench start_up --profile dev -- $(if $(ALL),--all) $(if $(REPORT),--report)
	$(if $(ALL),cargo bench -p shared --bench feedback --bench discovery --bench validation --bench actions)
	$(if $(ALL),cargo bench -p tests --bench stream)
	$(if $(ALL),$(GROWTH))

# The requests' generator and the stand-ins have the profile of the tests, like the measuring program of make bench.
load: ## latencies of the release binaries under load, and whether each effect is made once (10 minutes and the build; REPORT=1: into docs/load.md)
	cargo bench --workspace --bench load --profile dev -- $(if $(REPORT),--report)

GROWTH = cargo bench --workspace --bench growth --profile dev

growth: ## what each operation costs while the things it works on become many: writes docs/growth.md
	$(GROWTH) -- --report "$(CURDIR)/docs/growth.md"

faults: ## each request of each flow fails in every way, then two of them in each of many plays; a run is killed at each await (FAULT_PAIRS=60 of each flow; FAULT_SEED=number repeats a run)
	FAULT_WAYS=all FAULT_PAIRS=$(or $(FAULT_PAIRS),60) FAULT_SEED=$(or $(FAULT_SEED),$(shell date +%s)) cargo test --workspace --test guarantees --test journeys -- fault_walk killed_at_any_await

# A nightly compiler and cargo-fuzz: tests/fuzz/README.md. Findings are in tests/fuzz/artifacts, new inputs in tests/fuzz/found.
fuzz: ## every parser of outside input, a minute each (SECONDS=60; TARGETS="webhooks pages")
	FUZZ_SECONDS=$(SECONDS) tests/fuzz/run $(TARGETS)

mutants: ## break the code of the promises, one small change at a time, and name the changes that no test notices: the lines since BASE (HEAD~1), or MODULES="lease parser" (SHARE=1/20 of a module's changes)
	tests/mutants/run $(MODULES)

build: ## the functions as Lambda takes them, for arm64 or ARCHITECTURE=x86_64
	infra/local/make-venv
	infra/build

deploy: ## check, build, upload and deploy to AWS
	@infra/deploy

destroy: ## delete a deployment, STACK=name: first lists its effects and asks; keeps the data without DATA=delete
	@infra/destroy

released-tables: ## at a release: write down its tables and indexes, to compare the next release with
	infra/local/make-venv
	$(VENV)/python -B infra/deployment/template.py

# STACK= names a stack on AWS; without it the local stack that is running is meant.
IN_STACK = $(if $(STACK),--stack="$$STACK")
# Names a missing variable in a sentence. Variables given to make are in the environment of its recipes, too.
needs = $(if $($(1)),,$(error $(1)= is needed: $(2)))
SLUG_IS = the name of the organization in addresses, of a-z, 0-9 and -
# Some shells have a NAME of their own, that of the machine.
NAME_GIVEN = $(filter command,$(origin NAME))

organization: ## make an organization and its first owner: SLUG=harbour-dental OWNER=<sub of the owner's tokens> (NAME="Harbour Dental")
	$(call needs,SLUG,$(SLUG_IS))$(call needs,OWNER,the sub of the owner's tokens; infra/organization --help says more)
	@infra/organization $(IN_STACK) --owner="$$OWNER" $(if $(NAME_GIVEN),--name="$$NAME") $(if $(ADD_OWNER),--add-owner) \
		$(if $(OWNER_IS_SUB),--owner-is-sub) -- "$$SLUG"

budgets: ## set an organization's budgets where they differ from the deployment's: SLUG=harbour-dental BUDGETS='{"runs_per_hour": 500}'
	$(call needs,SLUG,$(SLUG_IS))$(call needs,BUDGETS,a JSON object such as {"runs_per_hour": 500})
	@infra/organization $(IN_STACK) --budgets="$$BUDGETS" -- "$$SLUG"

catalogue: ## load infra/catalogue into the running local stack, or on AWS with STACK=name (DRY_RUN=1: only list the changes)
	@infra/catalogue/load $(if $(STACK),--stack $(STACK)) $(if $(DRY_RUN),--dry-run)

catalogue-import: ## print a draft of a file with the components of an app at Pipedream: APP=slack_v2 (KEYS="slack_v2-post-message …")
	@infra/catalogue/load $(if $(STACK),--stack $(STACK)) --import $(or $(APP),$(error APP=slug of an app is needed)) $(KEYS)

clean: ## remove what was built, the tools and the local state
	cargo clean
	rm -rf .venv .venv-lint tests/mcp_client/node_modules tests/chat_clients/node_modules \
		tests/benches/node/node_modules tests/benches/node/built
