#!/usr/bin/env bash
# The default tests with every Python from 3.11 on that is present (on PATH, or of pyenv), each in an environment of its
# own under .venv-pythons/. Name versions to run only those: bash scripts/test_pythons.sh 3.12 3.13
set -uo pipefail
cd "$(dirname "$0")/.."

versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(3.11 3.12 3.13 3.14)
failed=()
for version in "${versions[@]}"; do
  python=$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python 2>/dev/null | tail -n 1)
  python=${python:-python$version}
  if ! "$python" -c "" 2>/dev/null; then
    echo "== Python $version: not present"
    continue
  fi
  echo "== Python $version: $python"
  environment=.venv-pythons/$version
  [ -d "$environment" ] || "$python" -m venv "$environment"
  if ! { "$environment/bin/python" -m pip install --quiet -e '.[dev]' && "$environment/bin/python" -m pytest -n 2; }; then
    failed+=("$version")
  fi
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
