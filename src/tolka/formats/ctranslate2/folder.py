"""Write a Transformer as a folder of CTranslate2 (https://opennmt.net/CTranslate2), which decodes without torch.

The folder has what CTranslate2 needs (model.bin, config.json, vocabularies), the SentencePiece models, and what
mt-translate needs besides: `tolka.json` and the manifest with the checksums of all files.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.ctranslate2.exported import EPSILON, POSITIONS, vocabularies
from tolka.formats.ctranslate2.plain_model import Array, PlainModel, read_plain_model, sinusoids
from tolka.system.workers import call
from tolka.tokenizer.special_tokens import BOS, EOS, UNK

INSTALL = "pip install 'tolka[ctranslate2]'"
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH", "swiglu": "SWISH"}
# Greatest sum of two neighbouring weights in int8. Where a processor has neither VNNI nor AMX, oneDNN adds their
# products with inputs (0 to 255) in 16 bits, and cuts off what is beyond: 255 * (127 + 1 for rounding) is not. So all
# processors have the same sums.
_MAX_INT8 = np.float32(127)


def import_failure() -> str:
    """Return why CTranslate2 cannot be imported; "" if it can."""
    try:
        import ctranslate2  # noqa: F401
    except (ImportError, OSError) as error:  # or a library that it needs is missing, or of another version
        return f"CTranslate2 cannot be imported ({' '.join(str(error).split())}): install it ({INSTALL})"
    return ""


def write_folder(model: PlainModel, folder: Path, dtype: str = "float32") -> None:
    """Write CTranslate2's own files of a model into an empty folder: model.bin, config.json and the vocabularies.

    dtype: of DTYPES. ConfigError if the package is missing; CheckpointError if the weights do not fit config.yaml.
    """
    if reason := import_failure():
        raise ConfigError(reason)
    from ctranslate2 import specs

    spec = _Specification(model, specs, dtype == "int8").build()
    try:
        spec.validate()
        # int8 is quantised below, with a scale of our own; see _MAX_INT8.
        with np.errstate(over="ignore"):  # what float16 cannot hold becomes inf, which the comparison refuses
            spec.optimize(quantization=dtype if dtype in ("bfloat16", "float16") else None)
    except ValueError as error:
        raise CheckpointError(f"{model.folder}: {' '.join(str(error).split())}") from None
    spec.save(str(folder))


def write_folder_apart(model: Path, folder: Path, dtype: str) -> None:
    """Write the folder of a model directory as `write_folder`, in another process unless this one has torch.

    CTranslate2's specifications import torch if it is installed, which takes longer than to translate a line.
    """
    if "torch" in sys.modules:
        write_folder(read_plain_model(model), folder, dtype)
        return
    call(_write_without_torch, model, folder, dtype, lost="the process that converted the model ended with {}")


def _write_without_torch(model: Path, folder: Path, dtype: str) -> None:
    # None hides a module (https://docs.python.org/3/reference/import.html).
    sys.modules["torch"] = None  # type: ignore[assignment]
    write_folder(read_plain_model(model), folder, dtype)


class _Specification:
    """Builds CTranslate2's specification of a model."""

    def __init__(self, model: PlainModel, specs: Any, int8: bool) -> None:
        """int8: whether the weights are quantised."""
        self.model, self.specs, self.options, self._int8 = model, specs, model.options, int8
        self.width = model.options.d_model
        self._names = set[str]()  # names of the arrays that were read

    def build(self) -> Any:
        """Return the specification with all weights and vocabularies."""
        model, specs, options = self.model, self.specs, self.options
        common: dict[str, Any] = {
            "pre_norm": options.norm == "pre",
            "activation": getattr(specs.common_spec.Activation, _ACTIVATIONS[options.activation]),
            "ffn_glu": options.activation == "swiglu",
            "rms_norm": options.normalization == "rmsnorm",
        }
        # 0 = all dimensions are rotated.
        if options.positions == "rotary":
            common |= {"rotary_dim": 0, "rotary_interleave": True}
        encoder = specs.TransformerEncoderSpec(options.layers, options.heads, **common)
        common["alignment_heads"] = options.heads  # of the last layer, whose mean is returned as attention
        decoder = specs.TransformerDecoderSpec(options.decoder_layers, options.heads, **common)
        spec = specs.TransformerSpec(encoder, decoder)
        tokenizer = model.tokenizer
        # Embeddings first: a false d_model is found before a table of positions is made of that width.
        self._fill_weight(encoder.embeddings[0], self._embedding("source", tokenizer.source_size))
        target = self._embedding("target", tokenizer.target_size)
        if options.decoder_start == "zero":
            target = target.copy()  # it may be the output layer's as well
            target[BOS] = 0.0
        self._fill_weight(decoder.embeddings, target)
        self._fill_weight(decoder.projection, self._embedding("output", tokenizer.target_size))
        if options.output_bias:
            decoder.projection.bias = self._array("output_bias", tokenizer.target_size)
        self._fill_stack(encoder, "encoder")
        self._fill_stack(decoder, "decoder")
        model.check_names(self._names)
        self._fill_vocabularies(spec)
        spec.config.layer_norm_epsilon = EPSILON[options.normalization]
        return spec

    def _fill_vocabularies(self, spec: Any) -> None:
        source, target = vocabularies(self.model.tokenizer)
        spec.register_source_vocabulary(source)
        spec.register_target_vocabulary(target)
        spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (target[i] for i in (BOS, EOS, UNK))
        spec.config.decoder_start_token = target[EOS if self.options.decoder_start == "eos" else BOS]
        spec.config.add_source_bos, spec.config.add_source_eos = False, True

    def _fill_stack(self, stack: Any, side: str) -> None:
        """Fill in an encoder or decoder. side: its name."""
        stack.scale_embeddings = self.options.scale_embeddings
        if self.options.positions != "rotary":
            stack.position_encodings.encodings = self._positions("source" if side == "encoder" else "target")
        if self.options.norm == "pre":
            self._fill_norm(stack.layer_norm, f"{side}_norm")
        for number, layer in enumerate(stack.layer):
            here = f"{side}.{number}"
            attentions = {"attention": (layer.self_attention, {"query_key_value": 3, "output": 1})}
            if side == "decoder":
                attentions["cross"] = layer.attention, {"query": 1, "key_value": 2, "output": 1}
            for name, (attention, matrices) in attentions.items():
                self._fill_norm(attention.layer_norm, f"{here}.around_{name}.norm")
                for linear, (matrix, count) in zip(attention.linear, matrices.items(), strict=True):
                    self._fill_linear([linear], f"{here}.{name}.{matrix}", count * self.width, self.width)
            self._fill_norm(layer.ffn.layer_norm, f"{here}.around_feedforward.norm")
            # Our matrix of SwiGLU has both halves, (2 * inner, D): the first is the gate.
            parts = [layer.ffn.linear_0, *([layer.ffn.linear_0_noact] if self.options.activation == "swiglu" else [])]
            self._fill_linear(parts, f"{here}.feedforward.inner", self.options.inner_width, self.width)
            self._fill_linear([layer.ffn.linear_1], f"{here}.feedforward.outer", self.width, self.options.inner_width)

    def _fill_linear(self, parts: Sequence[Any], name: str, outputs: int, inputs: int) -> None:
        """Set linear layers, each (outputs, inputs), that ours has stacked in one."""
        count = len(parts)
        weight = self._array(f"{name}.weight", count * outputs, inputs)
        bias = self._array(f"{name}.bias", count * outputs)
        for part, rows, values in zip(parts, np.split(weight, count), np.split(bias, count), strict=True):
            self._fill_weight(part, rows)
            part.bias = values

    def _fill_weight(self, layer: Any, weight: Array) -> None:
        """Set a matrix (outputs, inputs) of a linear layer or an embedding, quantised for int8."""
        layer.weight = weight
        if self._int8:
            # The scale of a row puts its largest sum of two neighbours at _MAX_INT8; a row of zeros has one too.
            pairs = np.abs(np.pad(weight, ((0, 0), (0, weight.shape[1] % 2)))).reshape(len(weight), -1, 2).sum(axis=2)
            largest = pairs.max(axis=1)
            layer.weight_scale = _MAX_INT8 / np.maximum(largest, np.finfo(np.float32).tiny * _MAX_INT8)
            layer.weight = np.rint(weight * layer.weight_scale[:, None]).astype(np.int8)

    def _fill_norm(self, layer: Any, name: str) -> None:
        layer.gamma = self._array(f"{name}.weight", self.width)
        if self.options.normalization == "layernorm":
            layer.beta = self._array(f"{name}.bias", self.width)

    def _positions(self, side: str) -> Array:
        """Return the table (POSITIONS, D) of what is added to embeddings. side: source or target."""
        kind = self.options.positions
        if kind != "learned":
            return sinusoids(POSITIONS, self.width, kind)
        learned = self._array(f"{side}_positions.embedding.weight", self.options.max_positions, self.width)
        return learned[np.minimum(np.arange(POSITIONS), len(learned) - 1)]  # those beyond the table share its last row

    def _embedding(self, kind: str, size: int) -> Array:
        """Return an embedding (size, D). kind: source, target or output."""
        sharing = self.options.share_embeddings
        # A shared matrix is saved under one of the names of those that share it.
        sharers = ["output", "source", "target"] if sharing == "all" else sorted(sharing.split("_"))
        names = [f"{name}_embedding.weight" for name in (sharers if kind in sharers else [kind])]
        saved = (name for name in names if name in self.model.arrays)
        return self._array(next(saved, f"{kind}_embedding.weight"), size, self.width)

    def _array(self, name: str, *shape: int) -> Array:
        """Return an array of the model; CheckpointError if it has another shape."""
        self._names.add(name)
        return self.model.array(name, *shape)
