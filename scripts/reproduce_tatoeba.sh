#!/bin/sh
# The experiment "tatoeba", and its row of results. DIR holds train, valid and test, each as .en and .de, plain
# or gzip: the English-German pairs of manythings.org/anki (CC-BY 2.0), split so that no test sentence is in
# train on either side.
# Usage: scripts/reproduce_tatoeba.sh DIR
set -eu
mt-train experiment=tatoeba "corpus.root=${1:?the folder with the corpus}"
python "$(dirname "$0")/results_row.py" runs/tatoeba
