#!/bin/sh
# The experiment "Multi30k small", and its row of results. DIR holds train, valid and test_2016_flickr, each as
# .en and .de; without DIR they come from the Hub.
# Usage: scripts/reproduce_multi30k.sh [DIR]
set -eu
mt-train experiment=multi30k ${1:+"corpus.root=$1" corpus.valid=valid corpus.test=test_2016_flickr}
python "$(dirname "$0")/results_row.py" runs/multi30k
