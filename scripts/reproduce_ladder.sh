#!/bin/sh
# The ladder on the embedded corpus: every rung, the page that sets them side by side, and where their attention looks.
# The tanh rungs have a third of the others' learning rate: at the same one they learn less (docs/ladder.md).
# With DIR, which holds train, valid and test_2016_flickr of Multi30k as .en and .de, three rungs on that too.
# Usage: scripts/reproduce_ladder.sh [DIR]
set -eu
here=$(dirname "$0")
gated=lstm_attention,gru_attention,bilstm_attention,bilstm_deep_attention
mt-train -m experiment=ladder model=rnn,rnn_attention optimizer.lr=0.001
mt-train experiment=ladder model=transformer_tiny model.decoder=ssru run.dir=runs/ladder/transformer_ssru
mt-train -m experiment=ladder "model=lstm,gru,bilstm_deep,$gated,transformer_tiny"
python "$here/../benchmarks/attention_hits.py" $(echo "rnn_attention,$gated,transformer_tiny" | tr , '\n' | sed 's|^|runs/ladder/|')
if [ $# -gt 0 ]; then
    mt-train -m experiment=ladder_multi30k "corpus.root=$1" corpus.valid=valid corpus.test=test_2016_flickr \
        model=lstm,lstm_attention,transformer_tiny
fi
