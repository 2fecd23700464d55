# `make demo` and `make test` set up what they need: a virtual environment with the locked dependencies.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help agreement arguments charts-lock demo sandbox up test rule lint check fmt schemas charts docs site golden lock bench sbom audit fuzz fuzz-coverage killed wheel performance clean preview

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

# Three sets of locked packages: what the compiler needs, what Pulumi needs on top, and what the tests need.
$(VENV)/.runtime: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.pulumi: requirements-pulumi.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-pulumi.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.pulumi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.docs: requirements-docs.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.txt
	@touch $@

$(VENV)/.fuzzing: requirements-fuzzing.txt $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-fuzzing.txt
	@touch $@

demo: $(VENV)/.runtime ## compile the environment seed: its topology, counts and output folder
	@$(BIN)/basalt topology seed
	@echo
	@$(BIN)/basalt compile seed
	@echo
	@echo "next: $(BIN)/basalt explain seed queue/vision    $(BIN)/basalt --help"
	@echo "      make sandbox    a real control plane on this machine, where seed's gangs land in their racks (needs Go)"

sandbox: $(VENV)/.runtime ## a real API server and Volcano on this machine, with the nodes and objects of seed (needs Go)
	@$(BIN)/basalt sandbox up seed
	@eval "$$($(BIN)/basalt sandbox status seed --quiet)" && $(BIN)/basalt apply seed --yes
	@echo "next: $(BIN)/basalt sandbox status    $(BIN)/basalt sandbox down"

# A file or bucket backend would write the whole state around every step. What a killed run leaves is adopted by the next;
# not in a preview, whose dry run would try to change in place what is to be replaced.
FAST := PULUMI_EXPERIMENTAL=1 PULUMI_SKIP_CHECKPOINTS=1 PULUMI_K8S_UPSERT_EXISTING_OBJECTS=true
up: $(VENV)/.pulumi ## pulumi up of the stack ENV, with one write of its state: make up ENV=seed [ARGS=--yes]
	@test -n "$(ENV)" || { echo "name the stack: make up ENV=seed" >&2; exit 2; }
	@pulumi preview --stack "$(ENV)"
	@case " $(ARGS) " in *" --yes "*) ;; *) printf 'perform this update? [y/N] '; read -r said; test "$$said" = y ;; esac
	$(FAST) pulumi up --stack "$(ENV)" --skip-preview --yes $(filter-out --yes,$(ARGS))

test: $(VENV)/.dev ## all tests
	$(BIN)/python -m pytest

rule: $(VENV)/.dev ## one rule: its cases and its page, then docs/rules, then all others: make rule RULE=queue-exists
	@test -n "$(RULE)" || { echo "name the rule: make rule RULE=queue-exists" >&2; exit 2; }
	@test -f "tests/cases/$(RULE).yaml" || { echo "there is no tests/cases/$(RULE).yaml, see CONTRIBUTING.md" >&2; exit 2; }
	$(BIN)/python -m pytest -x tests/test_rules.py -k "$(RULE)"
	$(BIN)/python tools/docs/rule_pages.py
	$(BIN)/python -m pytest --maxfail=3 tests/test_rules.py

lint: $(VENV)/.dev ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint ## format, lint, types, fast tests
	$(BIN)/python -m pytest -m "not slow"

fmt: $(VENV)/.dev ## format, and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schemas: $(VENV)/.runtime ## the schemas of Kubernetes and Volcano, from the pinned Go modules (needs Go)
	$(BIN)/python tools/schemas/generate.py

charts: $(VENV)/.runtime ## what Basalt knows of the charts in the pinned Go modules (needs Go)
	$(BIN)/python tools/charts/generate.py

arguments: $(VENV)/.dev ## pulumi_basalt/arguments.py: the components' arguments, from the schemas of the documents
	$(BIN)/python tools/arguments/generate.py

docs: $(VENV)/.runtime ## the generated pages of docs/, and what the commands on the others print (one page needs Go)
	$(BIN)/python tools/docs/rule_pages.py
	$(BIN)/python tools/docs/document_pages.py
	$(BIN)/python tools/docs/command_pages.py
	$(BIN)/python tools/docs/pictures.py
	$(BIN)/python tools/docs/how_to.py
	$(BIN)/python tools/docs/lists.py
	$(BIN)/python tools/docs/tour.py
	$(BIN)/python tools/docs/patterns.py
	$(BIN)/python tools/docs/volcano_examples.py

# The variable leaves out what Material's makers say about the end of MkDocs.
site: $(VENV)/.docs ## build/site: docs/ as a site, strict, every link checked; to search it: python -m http.server -d build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

agreement: $(VENV)/.dev ## docs/agreement.md: what the real API server and Volcano's webhooks say about the cases (needs Go)
	$(BIN)/python tools/agreement/generate.py

charts-lock: $(VENV)/.runtime ## the digests of schemas/charts.lock.json, from the charts' repositories (needs the network)
	$(BIN)/python tools/charts/lock.py

golden: $(VENV)/.dev ## rewrite the golden trees of tests/golden from what the compiler writes now
	$(BIN)/python -m tests.golden

lock: $(VENV)/.dev ## rewrite requirements.txt and requirements-dev.txt from pyproject.toml
	$(BIN)/python tools/lock.py

bench: $(VENV)/.dev ## the benchmarks, as ratios within one run
	$(BIN)/python -m benchmarks.jobs
	$(BIN)/python -m benchmarks.registering
	$(BIN)/python -m benchmarks.pulumi_up
	$(BIN)/python -m benchmarks.peers

sbom: $(VENV)/.runtime ## dist/basalt.cdx.json: what Basalt is made of, as CycloneDX, from the lock files
	$(BIN)/python tools/sbom.py

audit: $(VENV)/.dev ## known vulnerabilities of what is locked; 2 where nobody can tell [ARGS=--may-skip]
	$(BIN)/python tools/audit.py $(ARGS)

fuzz: $(VENV)/.dev ## nearly right documents through every command: make fuzz SECONDS=1800
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60)

fuzz-coverage: $(VENV)/.fuzzing ## bytes that reach new code, for each target: make fuzz-coverage SECONDS=600 [TARGETS=yaml]
	$(BIN)/python -m tools.fuzzing.run --seconds $(or $(SECONDS),60) $(TARGETS)

killed: $(VENV)/.dev ## 200 compiles killed at random moments, and pairs at once: what tree is left
	$(BIN)/python -m benchmarks.killed

wheel: $(VENV)/.dev ## dist/*.whl; two builds of one commit give the same bytes
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

performance: $(VENV)/.dev ## docs/performance.md and its plots, from measuring anew (a quarter of an hour; Go and Node for some peers)
	$(BIN)/python -m benchmarks.performance

preview: $(VENV)/.pulumi ## pulumi preview of the stack ENV, judged by the policy pack: make preview ENV=seed [ARGS=--diff]
	@test -n "$(ENV)" || { echo "name the stack: make preview ENV=seed" >&2; exit 2; }
	pulumi preview --stack "$(ENV)" --policy-pack policies $(ARGS)

clean: ## remove the virtual environment and everything built
	rm -rf $(VENV) build .mypy_cache .ruff_cache .hypothesis
