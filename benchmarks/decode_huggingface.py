"""Hugging Face transformers with a tolka model's weights (as M2M100, which has its layers): how fast it decodes.

    python benchmarks/decode_huggingface.py MODEL CONVERTED SOURCE OUT BEAM THREADS

CONVERTED keeps the model as transformers has it, from the first call on. Writes the translations to OUT; prints a JSON
line: see `passes.py`.
"""

import sys
from pathlib import Path

import sentencepiece
import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration

from passes import measure
from weights import Weights

PAD, BOS, EOS = 0, 1, 2
BATCH = 64  # sentences


def convert(weights: Weights, folder: Path) -> None:
    """As transformers keeps a model."""
    config = M2M100Config(
        vocab_size=len(weights.embedding),
        d_model=weights.width,
        encoder_layers=weights.layers[0],
        decoder_layers=weights.layers[1],
        encoder_attention_heads=weights.heads,
        decoder_attention_heads=weights.heads,
        encoder_ffn_dim=weights.inner,
        decoder_ffn_dim=weights.inner,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        max_position_embeddings=512,
    )
    model = M2M100ForConditionalGeneration(config).eval()
    state = {"model.shared.weight": weights.embedding, "lm_head.weight": weights.embedding}
    for side in ("encoder", "decoder"):
        state[f"model.{side}.embed_tokens.weight"] = weights.embedding

        def put(theirs: str, ours: str, part: int | None = None, parts: int = 1, side: str = side) -> None:
            weight, bias = weights.pair(f"{side}{ours}", part, parts)
            state[f"model.{side}{theirs}.weight"], state[f"model.{side}{theirs}.bias"] = weight, bias

        put(".layer_norm", "_norm")
        for number in range(weights.layers[side == "decoder"]):
            there, here = f".layers.{number}", f".{number}"
            put(f"{there}.self_attn_layer_norm", f"{here}.around_attention.norm")
            for part, name in enumerate("qkv"):
                put(f"{there}.self_attn.{name}_proj", f"{here}.attention.query_key_value", part, 3)
            put(f"{there}.self_attn.out_proj", f"{here}.attention.output")
            if side == "decoder":
                put(f"{there}.encoder_attn_layer_norm", f"{here}.around_cross.norm")
                put(f"{there}.encoder_attn.q_proj", f"{here}.cross.query")
                for part, name in enumerate("kv"):
                    put(f"{there}.encoder_attn.{name}_proj", f"{here}.cross.key_value", part, 2)
                put(f"{there}.encoder_attn.out_proj", f"{here}.cross.output")
            put(f"{there}.final_layer_norm", f"{here}.around_feedforward.norm")
            put(f"{there}.fc1", f"{here}.feedforward.inner")
            put(f"{there}.fc2", f"{here}.feedforward.outer")
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()}, strict=True)
    model.save_pretrained(folder)


def main(trained: Path, folder: Path, source: Path, out: Path, beam: int, threads: int) -> None:
    """Load, translate in batches of like length."""
    torch.set_num_threads(threads)
    weights = Weights(trained)
    if not folder.exists():
        part = folder.with_suffix(".part")
        convert(weights, part)
        part.rename(folder)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(trained / "tokenizer.model"))
    model = M2M100ForConditionalGeneration.from_pretrained(folder).eval()
    table = torch.from_numpy(weights.positions())
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weights[PAD + 1 : PAD + 1 + len(table)] = table  # it counts positions from there

    def translate(lines: list[str]) -> tuple[list[str], int]:
        rows = [[*row, EOS] for row in pieces.encode(lines)]
        order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
        found: dict[int, list[int]] = {}
        for start in range(0, len(order), BATCH):
            numbers = order[start : start + BATCH]
            longest = len(rows[numbers[0]])
            ids = torch.tensor([rows[number] + [PAD] * (longest - len(rows[number])) for number in numbers])
            with torch.inference_mode():
                results = model.generate(
                    input_ids=ids,
                    attention_mask=(ids != PAD).long(),
                    num_beams=beam,
                    do_sample=False,
                    max_new_tokens=2 * longest + 20,
                )
            for number, row in zip(numbers, results.tolist(), strict=True):
                found[number] = [piece for piece in row[1:] if piece not in (PAD, EOS)]
        best = [found[number] for number in range(len(rows))]
        return pieces.decode(best), sum(len(row) + 1 for row in best)

    measure(translate, source, out)


if __name__ == "__main__":
    trained, folder, source, out = map(Path, sys.argv[1:5])
    main(trained, folder, source, out, int(sys.argv[5]), int(sys.argv[6]))
