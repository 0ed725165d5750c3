"""Options of models: read without torch, and each of their choices is computed by something."""

import pytest

from tolka.errors import ConfigError
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.models.transformer.layers import NORMALIZATIONS
from tolka.nn.feedforward import ACTIVATIONS
from tolka.nn.initialization import INITIALIZATIONS
from tolka.nn.rnn_cells import CELLS
from tolka.options.parsing import build


@pytest.mark.parametrize(
    ("kind", "key", "computed"),
    [
        (TransformerConfig, "activation", ACTIVATIONS),
        (TransformerConfig, "normalization", NORMALIZATIONS),
        (TransformerConfig, "initialization", INITIALIZATIONS),
        (RnnConfig, "cell", CELLS),
    ],
)
def test_what_can_be_chosen_is_what_can_be_computed(
    kind: type[TransformerConfig | RnnConfig], key: str, computed: dict[str, object]
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(kind, {key: "?"}, "model")
    assert str(caught.value).endswith(f"Known: {', '.join(sorted(computed))}.")


def test_recurrent_models_are_described_by_their_cell_and_attention() -> None:
    assert (
        RnnConfig(bidirectional=True, attention="additive").architecture == "bidirectional LSTM with additive attention"
    )
    assert RnnConfig(cell="gru").architecture == "GRU with no attention"
