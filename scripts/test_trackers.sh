#!/usr/bin/env bash
# The tests of each experiment tracker, in an environment of its own under .venv-trackers/, which has that tracker only.
# Name trackers to test only those: bash scripts/test_trackers.sh wandb
set -uo pipefail
cd "$(dirname "$0")/.."

trackers=("$@")
[ ${#trackers[@]} -gt 0 ] || trackers=(tensorboard wandb mlflow trackio)
failed=()
for tracker in "${trackers[@]}"; do
  echo "== $tracker"
  environment=.venv-trackers/$tracker
  [ -d "$environment" ] || python3 -m venv "$environment"
  if ! { "$environment/bin/python" -m pip install --quiet -e ".[$tracker,plots]" pytest hypothesis &&
    "$environment/bin/python" -m pytest tests/tracking; }; then
    failed+=("$tracker")
  fi
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
