#!/bin/sh
# What each part of the experiment "Multi30k tiny" gives, and what is not in it would: 3000 updates each, one
# thing changed at a time, one table. DIR as for reproduce_multi30k_tiny.sh.
# Usage: scripts/ablate_multi30k_tiny.sh [DIR]
set -eu
runs=
change() {
    name=$1
    shift
    mt-train experiment=multi30k_tiny run.name="ablation-$name" trainer.updates=3000 scheduler.horizon=3000 \
        model.dropout=0.3 trainer.validate_every=1000 trainer.average=0 \
        ${corpus:+"corpus.root=$corpus" corpus.valid=valid corpus.test=test_2016_flickr} "$@"
    runs="$runs runs/ablation-$name"
}
corpus=${1:-}
change base
change dropout-0.1 model.dropout=0.1
change constant_rate scheduler.floor=1
change vocabulary-4000 tokenizer.vocab_size=4000
change muon optimizer=muon optimizer.lr=0.003
# shellcheck disable=SC2086  # names of runs, without blanks
python "$(dirname "$0")/results_row.py" --each $runs
