"""The same work for every system: one text, one joint BPE, one size of Transformer, one way to count.

Sizes as in most small comparisons: 3 + 3 layers, width 256, inner width 1024, 4 heads, vocabulary 8000, tied three
ways; or an encoder-decoder of one recurrent layer each, of width 256, with attention. A target token is a piece or
`</s>`; padding does not count.
"""

import json
from dataclasses import dataclass
from pathlib import Path

LAYERS, WIDTH, INNER, HEADS, VOCABULARY = 3, 256, 1024, 4, 8000
DROPOUT, SMOOTHING, PEAK, WARMUP = 0.1, 0.1, 1e-3, 400
TOKENS = 4096  # of the target in a batch, about
PAD, BOS, EOS, UNK = 0, 1, 2, 3
GATES = {"rnn": 1, "lstm": 4, "gru": 3}
FAMILIES = ("transformer", *GATES)


@dataclass(frozen=True)
class Work:
    """A folder with train and test, as .en and .de, plain and cut into pieces (.sp.en), and spm.model."""

    folder: Path

    @property
    def model(self) -> Path:
        """SentencePiece's."""
        return self.folder / "spm.model"

    def prefix(self, name: str) -> Path:
        """Of train or test."""
        return self.folder / name

    def lines(self, name: str, language: str) -> list[str]:
        """Of train.en, test.sp.de and so on."""
        return self.prefix(name).with_name(f"{name}.{language}").read_text(encoding="utf-8").split("\n")[:-1]


def prepare(corpus: Path, folder: Path, test: str) -> Work:
    """Copy the text, learn the pieces, cut it into them; nothing where that was done before. test: its prefix."""
    import sentencepiece

    work = Work(folder)
    if (folder / "done.json").is_file():
        return work
    folder.mkdir(parents=True, exist_ok=True)
    for name, prefix in (("train", "train"), ("test", test)):
        for language in ("en", "de"):
            text = (corpus / f"{prefix}.{language}").read_text(encoding="utf-8")
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=[str(folder / "train.en"), str(folder / "train.de")],
        model_prefix=str(folder / "spm"),
        vocab_size=VOCABULARY,
        model_type="bpe",
        character_coverage=1.0,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(work.model))
    counts = {}
    for name in ("train", "test"):
        for language in ("en", "de"):
            cut = [pieces.encode(line, out_type=str) for line in work.lines(name, language)]
            (folder / f"{name}.sp.{language}").write_text("".join(f"{' '.join(row)}\n" for row in cut), "utf-8")
            counts[f"{name}.{language}"] = sum(len(row) + 1 for row in cut)
    vocabulary = [pieces.id_to_piece(i) for i in range(4, VOCABULARY)]
    (folder / "pieces.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), encoding="utf-8")
    (folder / "done.json").write_text(json.dumps(counts), encoding="utf-8")
    return work


def flop_per_target_token(work: Work, family: str = "transformer") -> float:
    """Of matrix products in training, forward and backward: 6 for each weight that a token meets.

    A source token meets the encoder and the decoder's keys and values of the source; a target token meets the rest of
    the decoder and the output layer; a recurrent layer has two matrices a gate, attention one for the source, and one
    joins state and context. Attention's own products, below 2 % at these lengths, are left out.
    """
    counts = json.loads((work.folder / "done.json").read_text(encoding="utf-8"))
    sources = float(counts["train.en"] / counts["train.de"])
    if family in GATES:
        layer = 2 * GATES[family] * WIDTH * WIDTH
        return 6 * (sources * (layer + WIDTH * WIDTH) + layer + 2 * WIDTH * WIDTH + WIDTH * VOCABULARY)
    attention, inner = 4 * WIDTH * WIDTH, 2 * WIDTH * INNER
    per_source = LAYERS * (attention + inner + 2 * WIDTH * WIDTH)
    per_target = LAYERS * (2 * attention - 2 * WIDTH * WIDTH + inner) + WIDTH * VOCABULARY
    return 6 * (sources * per_source + per_target)
