"""Train SentencePiece models: on the training text only, and the same for the same text on every machine."""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from tolka.errors import ConfigError, DataError
from tolka.system.progress import Say
from tolka.system.workers import call
from tolka.text.pairs import Pair
from tolka.tokenizer.special_tokens import BOS, EOS, PAD, UNK
from tolka.tokenizer.tokenizer import SEED_SYMBOLS, Tokenizer, TokenizerConfig

_MAX_LINE_BYTES = 16384  # SentencePiece learns nothing from longer ones
_IN_PROCESS_CHARACTERS = 500_000  # with this much text, training takes half a second (unigram, 8000 subwords)
_LOST_PROCESS = "the process that trained SentencePiece ended with {}"


def train_tokenizer(config: TokenizerConfig, pairs: Callable[[], Iterator[Pair]], say: Say) -> Tokenizer:
    """Train one model on both sides of the pairs, or one on each side.

    pairs: returns the training pairs from the start each time it is called. say: receives notes.
    """
    sides: dict[str, Callable[[], Iterator[str]]] = {
        "source": lambda: (p.source for p in pairs()),
        "target": lambda: (p.target for p in pairs()),
    }
    if config.shared:
        sides = {"shared": lambda: (text for p in pairs() for text in (p.source, p.target))}
    return Tokenizer([train_model(config, texts, side, say) for side, texts in sides.items()])


def train_model(config: TokenizerConfig, texts: Callable[[], Iterator[str]], side: str, say: Say) -> bytes:
    """Train one SentencePiece model; return it serialised.

    texts: returns the lines from the start each time it is called. side: its name in notes. say: receives them.
    """
    # SentencePiece finds out only while training that a size is impossible; its message says which one is not.
    size, learnt, characters = config.vocab_size, texts, config.vocab_size
    while True:
        try:
            model = _learn(config, size, learnt())
            break
        except RuntimeError as error:
            if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
                # A tenth of the subwords is left for longer ones than characters.
                characters = min(characters, size - SEED_SYMBOLS) * 9 // 10
                config, learnt = _with_common_characters(config, characters, texts, int(needed[1]), side, say)
            else:
                size = _possible_size(str(error), size)
    if size < config.vocab_size:
        say(f"the corpus is too small for {config.vocab_size} {side} subwords: the vocabulary has {size}")
    return model


def _learn(config: TokenizerConfig, size: int, texts: Iterator[str]) -> bytes:
    """Run SentencePiece's training, in a child process for much text; RuntimeError with its message."""
    options = {
        "model_type": config.type,
        "vocab_size": size,
        "byte_fallback": config.byte_fallback,
        "normalization_rule_name": config.normalization,
        "character_coverage": config.character_coverage,
        "user_defined_symbols": config.symbols,
        "max_sentence_length": _MAX_LINE_BYTES,
        # More threads add floats in another order: the model would depend on the machine.
        "num_threads": 1,
        **dict(zip(("pad_id", "bos_id", "eos_id", "unk_id"), (PAD, BOS, EOS, UNK), strict=True)),
        "minloglevel": 2,
    }
    head, characters = [], 0
    for text in texts:
        head.append(text)
        characters += len(text)
        if characters > _IN_PROCESS_CHARACTERS:
            # It may take an hour, during which Python handles no signal: Ctrl-C ends the process.
            return call(_run_sentencepiece, options, lost=_LOST_PROCESS, lines=chain(head, texts))
    return _run_sentencepiece(options, head)


def _run_sentencepiece(options: Mapping[str, Any], texts: Iterable[str]) -> bytes:
    from sentencepiece import SentencePieceTrainer

    raised: list[BaseException] = []

    def guarded() -> Iterator[str]:
        try:
            yield from texts
        except BaseException as error:
            # SentencePiece would replace it by an error of its own.
            raised.append(error)

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(sentence_iterator=guarded(), model_writer=model, **options)
    except RuntimeError:
        if not raised:
            raise
    if raised:
        raise raised[0]
    return model.getvalue()


def _with_common_characters(
    config: TokenizerConfig, most: int, texts: Callable[[], Iterator[str]], needed: int, side: str, say: Say
) -> tuple[TokenizerConfig, Callable[[], Iterator[str]]]:
    """Return options and texts with the `most` frequent characters alone; bytes spell the others.

    needed: the size of a vocabulary with all characters. ConfigError without bytes to fall back to.
    """
    if not config.byte_fallback or most < 1:
        raise ConfigError(
            f"tokenizer.vocab_size ({config.vocab_size}) must be at least {needed}, for the characters that "
            f"tokenizer.character_coverage ({config.character_coverage:g}) asks for: raise it, lower the coverage (to "
            "0.98 at least), or set tokenizer.byte_fallback=true"
        )
    # SentencePiece itself covers at least 0.98 of a text: rare characters become blanks, and all others are covered.
    counts = Counter(chain.from_iterable(texts()))
    common = dict(counts.most_common(most))
    rare = dict.fromkeys(map(ord, counts.keys() - common.keys()), " ")
    share = sum(common.values()) / counts.total()
    say(
        f"{config.vocab_size} {side} subwords are too few for {len(counts)} characters: the {len(common)} most "
        f"frequent, {share:.1%} of the text, have subwords of their own, and the others are spelt as bytes"
    )
    return replace(config, character_coverage=1.0), lambda: (text.translate(rare) for text in texts())


def _possible_size(message: str, size: int) -> int:
    """Return the vocabulary size to try next, from SentencePiece's message; DataError for other errors."""
    allowed = re.search(r"value <= (\d+)", message)
    if allowed and int(allowed[1]) < size:
        return int(allowed[1])
    if allowed or "high" in message or "too large" in message:
        return size * 3 // 4
    raise DataError(f"SentencePiece could not be trained: {' '.join(message.split())[:300]}")
