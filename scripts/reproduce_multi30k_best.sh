#!/bin/sh
# The best Multi30k translator of three hours on two cores: two models, trained at once on one thread each,
# alike but for seed and optimiser; their rows of results, and what they make of the test set together. DIR
# holds train, valid and test_2016_flickr, each as .en and .de.
# Usage: scripts/reproduce_multi30k_best.sh DIR
set -eu
corpus=${1:?the folder with the corpus}
train() {
    mt-train experiment=multi30k_best "corpus.root=$corpus" corpus.valid=valid corpus.test=test_2016_flickr \
        trainer.threads=1 "$@"
}
train run.name=multi30k_best-adamw &
other=$!
trap 'kill "$other" 2>/dev/null' INT TERM EXIT
train run.name=multi30k_best-muon optimizer=muon optimizer.lr=0.003 run.seed=2
wait "$other"
trap - INT TERM EXIT
python "$(dirname "$0")/results_row.py" --each runs/multi30k_best-adamw runs/multi30k_best-muon
mt-eval runs/multi30k_best-adamw,runs/multi30k_best-muon \
    "source=$corpus/test_2016_flickr.en" "reference=$corpus/test_2016_flickr.de" "metrics.names=[bleu,chrf++,bleu-lc]"
