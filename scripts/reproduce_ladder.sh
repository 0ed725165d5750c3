#!/bin/sh
# The ladder on the embedded corpus: every rung, the page that sets them side by side, and where their attention looks.
# With DIR, which holds train, valid and test_2016_flickr of Multi30k as .en and .de, three rungs on that too.
# Usage: scripts/reproduce_ladder.sh [DIR]
set -eu
here=$(dirname "$0")
looking=rnn_attention,lstm_attention,gru_attention,bilstm_attention,bilstm_deep_attention,transformer_tiny
mt-train -m experiment=ladder "model=rnn,lstm,gru,bilstm_deep,$looking"
python "$here/attention_hits.py" $(echo "$looking" | tr , '\n' | sed 's|^|runs/ladder/|')
if [ $# -gt 0 ]; then
    mt-train -m experiment=ladder_multi30k "corpus.root=$1" model=lstm,lstm_attention,transformer_tiny
fi
