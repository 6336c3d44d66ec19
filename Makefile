# make demo    the main job on a bundled sample: no GPU, no Nsight tools needed
# make test    all tests; those that need what this machine lacks are skipped and say why
# make check   lint (with the security rules), format, types; known vulnerabilities where pip-audit can be asked
# make compatibility  the wheel with every Python, the lowest and the newest dependencies, pip, pipx and uv; half an hour
# make bench   run times, memory and pages beside the tools that do the same, into benchmarks/RESULTS.md
# make docs    write the generated documents and the screenshots anew
# make docs-site   the site of the documents, in build/site
# make clean   remove everything that was made
# Each does its own set-up, in .venv, and again only when pyproject.toml changes.

BIN := .venv/bin
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3 python3.14 python
MODERN := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

.PHONY: demo test check compatibility bench docs docs-site clean
.DELETE_ON_ERROR:

demo: .venv/.installed
	$(BIN)/ncukit demo
	@command -v ncukit >/dev/null || echo "To type ncukit, put it on PATH: . $(BIN)/activate" >&2

# Ratios of run times are measured first, alone; everything else runs on all cores.
test: .venv/.installed-dev
	@status=0; \
	$(BIN)/python -m pytest -q -m speed || status=$$?; \
	$(BIN)/python -m pytest -m "not speed" -n auto --dist worksteal || status=$$?; \
	exit $$status

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/audit.py

compatibility: .venv/.installed-dev
	$(BIN)/python -m scripts.compatibility --record

bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks

docs: .venv/.installed-dev
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/screenshots.py

# Not --quiet: mkdocs would no longer count warnings, and --strict let broken links pass.
docs-site: .venv/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "build/site/index.html; its search needs a server: $(BIN)/python -m http.server -d build/site"

clean:
	rm -rf .venv build dist reports/demo .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e .
	@touch $@

.venv/.installed-dev: .venv/.installed pyproject.toml
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

.venv/bin/python:
	@for python in $(PYTHONS); do \
	    if $$python -c "$(MODERN)" 2>/dev/null; then \
	        echo "setting up .venv with $$($$python --version)"; \
	        exec $$python -m venv .venv; \
	    fi; \
	done; \
	echo "ncukit needs Python 3.11 or newer, with its venv module; found here:" >&2; \
	for python in $(PYTHONS); do \
	    $$python --version 2>/dev/null | sed "s|^|  $$python: |" >&2; \
	done; \
	echo "Install one (Debian, Ubuntu: apt install python3-venv), or name it: make PYTHON=/path/to/python3.12" >&2; \
	exit 1
