#!/bin/sh
# The experiment "Multi30k tiny", and its row of results: three seeds, mean and deviation. DIR holds train,
# valid and test_2016_flickr, each as .en and .de; without DIR they come from the Hub.
# Usage: scripts/reproduce_multi30k_tiny.sh [DIR]
set -eu
for seed in 1 2 3; do
    mt-train experiment=multi30k_tiny ${1:+"corpus.root=$1" corpus.valid=valid corpus.test=test_2016_flickr} \
        run.seed=$seed run.name=multi30k_tiny-$seed
done
python "$(dirname "$0")/results_row.py" runs/multi30k_tiny-1 runs/multi30k_tiny-2 runs/multi30k_tiny-3
for seed in 1 2 3; do
    python "$(dirname "$0")/results_row.py" runs/multi30k_tiny-$seed
done
