#!/bin/sh
# What the options that make training harder give on the embedded corpus: as many updates each, one thing changed at a
# time, one table. About half an hour on one thread.
# Usage: scripts/ablate_sample.sh [key=value ...]
set -eu
runs=
change() {
    name=$1
    shift
    mt-train experiment=sample run.name="ablation-sample-$name" report.page=false "$@"
    runs="$runs runs/ablation-sample-$name"
}
change base trainer.ema=0 "$@"
change sampling batching.sampling=0.1 trainer.ema=0 "$@"
change ema "$@"  # as the recipe has it
# shellcheck disable=SC2086  # names of runs, without blanks
python "$(dirname "$0")/results_row.py" --each $runs
