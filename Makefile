# The verbs of servesim. Each sets up .venv first, from nothing but Python 3.11.

.PHONY: run test format lint types layers check calibrate experiments

run: .venv/installed
	.venv/bin/servesim

test: .venv/installed
	.venv/bin/pytest

format: .venv/installed
	.venv/bin/ruff format .

lint: .venv/installed
	.venv/bin/ruff check .

types: .venv/installed
	.venv/bin/mypy

layers: .venv/installed
	.venv/bin/lint-imports

check: .venv/installed test lint types layers
	.venv/bin/ruff format --check .

calibrate: .venv/installed
	.venv/bin/pip install --quiet --editable '.[calibration]'
	.venv/bin/python -m calibration fit
	$(if $(DATA),for terms in overhead power transfer; do .venv/bin/python -m calibration $$terms --data $(DATA) || exit; done)

experiments: .venv/installed
	.venv/bin/python -m experiments

.venv/installed: pyproject.toml
	python3.11 -m venv .venv
	.venv/bin/pip install --quiet --editable '.[test]'
	touch $@
