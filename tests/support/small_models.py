"""Small models of every architecture, with each of their options, for tests."""

from tolka.models.options import ModelConfig
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig

TRANSFORMERS = {
    "transformer": TransformerConfig(d_model=32, heads=4, layers=2),
    "transformer post-norm": TransformerConfig(d_model=32, heads=4, layers=2, norm="post"),
    "transformer learned positions": TransformerConfig(d_model=32, layers=1, positions="learned", max_positions=6),
    "transformer free d_v": TransformerConfig(d_model=32, layers=1, d_v=5, d_ff=48, activation="gelu"),
    "transformer shallow decoder": TransformerConfig(d_model=32, layers=2, decoder_layers=1, share_embeddings="none"),
    "transformer attention dropout": TransformerConfig(
        d_model=32, layers=1, attention_dropout=0.2, activation_dropout=0.2
    ),
    "transformer rotary": TransformerConfig(d_model=32, layers=2, positions="rotary"),
    "transformer rotary, odd d_v": TransformerConfig(d_model=32, heads=1, layers=1, d_v=5, positions="rotary"),
    "transformer rmsnorm": TransformerConfig(d_model=32, layers=1, normalization="rmsnorm"),
    "transformer rmsnorm post-norm": TransformerConfig(d_model=32, layers=1, normalization="rmsnorm", norm="post"),
    "transformer swiglu": TransformerConfig(d_model=32, layers=1, activation="swiglu"),
    "transformer marian": TransformerConfig(
        d_model=32, layers=2, norm="post", activation="swish", positions="sinusoidal_halves", output_bias=True
    ),
    "transformer m2m_100": TransformerConfig(
        d_model=36, layers=2, positions="sinusoidal_fairseq", decoder_start="eos", share_embeddings="all"
    ),
    "transformer zeros first": TransformerConfig(
        d_model=32, layers=1, norm="post", positions="sinusoidal_marian", decoder_start="zero"
    ),
    "transformer unscaled embeddings": TransformerConfig(d_model=32, layers=1, scale_embeddings=False),
    "transformer ssru": TransformerConfig(d_model=32, layers=2, decoder="ssru"),
    "transformer ssru post-norm": TransformerConfig(
        d_model=32, layers=1, norm="post", decoder="ssru", positions="rotary", share_embeddings="none"
    ),
    "transformer kaiming": TransformerConfig(d_model=32, layers=1, initialization="kaiming"),
}
RECURRENT = {
    "rnn": RnnConfig(cell="rnn", d_model=32),
    "lstm": RnnConfig(d_model=32),
    "gru": RnnConfig(cell="gru", d_model=32),
    "rnn deep bidirectional": RnnConfig(cell="rnn", d_model=24, hidden=32, layers=2, bidirectional=True),
    "lstm deep bidirectional": RnnConfig(d_model=32, layers=2, bidirectional=True, share_embeddings="none"),
    "gru deep bidirectional": RnnConfig(cell="gru", d_model=32, layers=2, bidirectional=True),
    "rnn additive": RnnConfig(cell="rnn", d_model=32, attention="additive"),
    "lstm dot": RnnConfig(d_model=32, attention="dot", bidirectional=True),
    "lstm general fed": RnnConfig(d_model=32, layers=2, attention="general", input_feeding=True),
    "gru general": RnnConfig(cell="gru", d_model=32, attention="general", token_term=True),
    "gru additive fed": RnnConfig(cell="gru", d_model=24, hidden=40, attention="additive", input_feeding=True),
}
VARIANTS: dict[str, ModelConfig] = {**RECURRENT, **TRANSFORMERS}
