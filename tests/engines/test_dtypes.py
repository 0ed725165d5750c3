"""Dtypes for decoding: close to the model in fp32, which is unchanged; smaller; refused where unsupported."""

import pytest
import torch
from rows import each_row
from torch import Tensor, nn

from tolka.data.batch import EOS
from tolka.engines.torch_engine import check_dtype, convert_model
from tolka.errors import ConfigError
from tolka.kernels.quantized import Int8Matrix, QuantizedEmbedding, QuantizedLinear, has_vnni
from tolka.models.base import ModelConfig, Seq2Seq
from tolka.models.ensemble import Ensemble
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.nn.linear import Linear
from tolka.search.beam import BeamConfig

VOCABULARY = 60
CPU = torch.device("cpu")
MODELS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(d_model=64, layers=2),
    "rotary": TransformerConfig(d_model=64, layers=1, positions="rotary", normalization="rmsnorm", activation="swiglu"),
    "learned": TransformerConfig(d_model=64, layers=1, positions="learned", share_embeddings="none"),
    "lstm": RnnConfig(d_model=64, attention="additive", bidirectional=True),
    "gru": RnnConfig(cell="gru", d_model=64, attention="general", input_feeding=True),
}


def made(config: ModelConfig) -> Seq2Seq:
    torch.manual_seed(3)
    return config.build(VOCABULARY, VOCABULARY, shared=True).eval()


def first_scores(model: Seq2Seq) -> Tensor:
    """Return the logits of the first token of two sentences."""
    source = torch.tensor([[4, 5, 6, EOS], [7, EOS, 0, 0]])
    with torch.inference_mode():
        features, _ = model.step(torch.ones(2, 1, dtype=torch.long), model.start(source, torch.tensor([4, 2])))
        return model.logits(features).float()


@each_row("name", ["bf16", "int8"])
@each_row("model", MODELS)
def test_scores_are_near_those_of_fp32(model: str, name: str) -> None:
    whole = made(MODELS[model])
    before = {key: tensor.clone() for key, tensor in whole.state_dict().items()}
    wanted, found = first_scores(whole), first_scores(convert_model(whole, name))
    assert not torch.equal(wanted, found)
    assert float((wanted - found).norm() / wanted.norm()) < 0.05
    assert all(torch.equal(tensor, before[key]) for key, tensor in whole.state_dict().items())
    assert convert_model(whole, "fp32") is whole


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bf16", "int8"])
def test_a_search_runs_to_its_end(name: str) -> None:
    """Sentences longer than the initial table of positions."""
    model = convert_model(Ensemble([made(MODELS["transformer"]), made(MODELS["lstm"])]), name)
    source = torch.full((1, 300), 5)
    search = BeamConfig(beam_size=2, max_length_factor=1.0, max_length_extra=0)
    with torch.inference_mode():
        (found,) = search.build().search(model, source, torch.tensor([300]))
    assert found[0].tokens


def test_a_quantized_layer_by_hand() -> None:
    """With weights that are multiples of their scales and inputs at the ends of the range, only rounding is lost."""
    weight = torch.tensor([[127.0, -64.0], [254.0, 2.0]]) / 100
    layer = QuantizedLinear(Int8Matrix.of(weight), torch.tensor([1.0, -1.0]), [1, 1])
    x = torch.tensor([[1.27, 0.0], [0.0, 1.27]])
    torch.testing.assert_close(layer(x), x @ weight.T + torch.tensor([1.0, -1.0]), atol=0.02, rtol=0)
    assert layer.widths == [1, 1]
    positive = QuantizedLinear(Int8Matrix.of(weight), torch.tensor([1.0, -1.0]), [1, 1], non_negative=True)
    torch.testing.assert_close(positive(x), x @ weight.T + torch.tensor([1.0, -1.0]), atol=0.02, rtol=0)
    zeros = QuantizedLinear(Int8Matrix.of(torch.zeros(3, 2)), None, [3])
    assert torch.equal(zeros(x), torch.zeros(2, 3))


@pytest.mark.parametrize("non_negative", [False, True])
@pytest.mark.parametrize("many", [96, 6000])
def test_a_row_is_quantised_by_itself(many: int, non_negative: bool) -> None:
    """Its result is the same to the last bit beside rows a thousand times as large, beside zeros, and alone."""
    torch.manual_seed(0)
    layer = QuantizedLinear(Int8Matrix.of(torch.randn(many, 32)), torch.randn(many), [many], non_negative)
    rows = torch.randn(5, 32).abs() if non_negative else torch.randn(5, 32)
    beside = torch.cat([rows * 1000, rows, torch.zeros(2, 32)])
    assert torch.equal(layer(beside)[5:10], layer(rows))
    assert torch.equal(torch.cat([layer(row[None]) for row in rows]), layer(rows))
    assert torch.equal(layer(beside)[10:], layer(torch.zeros(1, 32)).expand(2, -1))


@pytest.mark.parametrize("model", MODELS)
def test_in_int8_scores_do_not_depend_on_the_batch(model: str) -> None:
    """Equal up to the fp32 rounding around the integers."""
    quantized = convert_model(made(MODELS[model]), "int8")
    sources = [torch.tensor([[*range(4, 4 + n), EOS]]) for n in (3, 9, 6)]
    together = torch.zeros(3, 10, dtype=torch.long)
    for row, source in zip(together, sources, strict=True):
        row[: source.size(1)] = source[0]

    def scores(source: Tensor, lengths: list[int]) -> Tensor:
        begin = torch.ones(len(source), 1, dtype=torch.long)
        with torch.inference_mode():
            features, _ = quantized.step(begin, quantized.start(source, torch.tensor(lengths)))
            return quantized.logits(features)

    alone = torch.cat([scores(source, [source.size(1)]) for source in sources])
    torch.testing.assert_close(scores(together, [4, 10, 7]), alone, atol=1e-4, rtol=0)


def test_int8_adds_the_output_bias() -> None:
    """A bias far above all other logits decides, in fp32 as in int8."""
    torch.manual_seed(1)
    config = TransformerConfig(d_model=64, heads=2, layers=1, output_bias=True)
    model = config.build(5000, 5000, shared=True).eval()
    assert model.output_bias is not None
    with torch.no_grad():
        model.output_bias[4321] = 100.0
    for name in ("fp32", "int8"):
        features = torch.randn(3, 64)
        with torch.inference_mode():
            logits = convert_model(model, name).logits(features)
        assert logits.argmax(dim=-1).tolist() == [4321] * 3
        torch.testing.assert_close(
            logits[:, 4321], 100 + features @ model.target_embedding.weight[4321], atol=0.1, rtol=0
        )


@pytest.mark.parametrize("shape", [(1, 32), (9, 32), (2, 3, 32)])
def test_a_map_to_many_numbers_is_those_of_its_parts(shape: tuple[int, ...]) -> None:
    """The parts are computed by another kernel where the processor has VNNI."""
    torch.manual_seed(0)
    weight, bias, x = torch.randn(6000, 32), torch.randn(6000), torch.randn(shape)
    whole = QuantizedLinear(Int8Matrix.of(weight), bias, [6000])(x)
    parts = [
        QuantizedLinear(Int8Matrix.of(weight[i : i + 2000]), bias[i : i + 2000], [2000])(x) for i in (0, 2000, 4000)
    ]
    torch.testing.assert_close(whole, torch.cat(parts, dim=-1))
    steps = 127 if has_vnni() else 63
    rounding = x.abs().max() / steps / 12**0.5 * 32**0.5 + weight.abs().max() / 127 / 12**0.5 * 32**0.5
    assert 0 < (whole - (x @ weight.T + bias)).pow(2).mean().sqrt() < 1.2 * rounding


def test_int8_takes_the_place_of_the_matrices_but_not_of_the_smallest() -> None:
    model = convert_model(made(MODELS["lstm"]), "int8")
    kinds = {name: type(module) for name, module in model.named_modules()}
    assert kinds["target_embedding"] is QuantizedEmbedding
    assert model.output_embedding is model.target_embedding  # still shared
    assert kinds["readout"] is QuantizedLinear
    assert kinds["attention.energy"] is Linear  # one row
    assert isinstance(made(MODELS["lstm"]).target_embedding, nn.Embedding)  # of the model that it is made from


def test_an_int8_embedding_is_the_rounded_matrix() -> None:
    """Each vector is within half a step of its own, and scores are the products with these vectors."""
    torch.manual_seed(0)
    weight = torch.randn(50, 32) * torch.rand(50, 1)
    embedding = QuantizedEmbedding(Int8Matrix.of(weight), is_output=True)
    vectors = embedding(torch.arange(50).view(5, 10)).view(50, 32)
    assert bool(((vectors - weight).abs() <= weight.abs().amax(dim=1, keepdim=True) / 127 * 0.501).all())
    x = torch.eye(32)[:4] * 3.0  # inputs at the end of their range, which are not rounded
    torch.testing.assert_close(embedding.scores(x, torch.ones(50)), x @ vectors.T + 1, atol=1e-4, rtol=0)


def test_models_of_an_ensemble_may_be_in_int8_already() -> None:
    members = [made(MODELS["transformer"]), made(MODELS["lstm"])]
    whole = first_scores(convert_model(Ensemble(members), "int8"))
    mixed = Ensemble([convert_model(members[0], "int8"), members[1]])
    assert torch.equal(first_scores(convert_model(mixed, "int8")), whole)
    assert not torch.equal(first_scores(convert_model(mixed, "fp32")), whole)


@pytest.mark.parametrize(
    ("name", "device", "words"),
    [("int8", "cuda", "it is for CPUs; try fp32, or bf16"), ("fp16", "cpu", "needs a CUDA device")],
)
def test_what_a_device_cannot_do_is_refused(name: str, device: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"decoding.precision={name}.*{words}"):
        check_dtype(name, torch.device(device))
    check_dtype("fp32", torch.device(device))
    check_dtype("bf16", torch.device(device))


def test_a_build_without_such_products_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.engines.torch_engine.supports_int8", lambda: False)
    with pytest.raises(ConfigError, match="this build of torch has no int8 matrix"):
        check_dtype("int8", CPU)
