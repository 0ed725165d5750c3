"""Training SentencePiece models: on the training text only, the same for the same text on every machine."""

import io
import re
from collections.abc import Callable, Iterator

from tolka.errors import ConfigError, DataError
from tolka.special import BOS, EOS, PAD, UNK
from tolka.text.corpus import Pair
from tolka.text.tokenizer import Tokenizer, TokenizerConfig

_MAX_LINE_BYTES = 16384


def train_tokenizer(
    config: TokenizerConfig, pairs: Callable[[], Iterator[Pair]], say: Callable[[str], None]
) -> Tokenizer:
    """Train on both sides of the pairs (one model), or on each (two).

    pairs: gives the training pairs from the start each time it is called. say: takes remarks for the user.
    """
    if config.shared:
        return Tokenizer([_train(config, lambda: (t for p in pairs() for t in (p.source, p.target)), "shared", say)])
    sides: dict[str, Callable[[], Iterator[str]]] = {
        "source": lambda: (p.source for p in pairs()),
        "target": lambda: (p.target for p in pairs()),
    }
    return Tokenizer([_train(config, texts, side, say) for side, texts in sides.items()])


def _train(config: TokenizerConfig, texts: Callable[[], Iterator[str]], side: str, say: Callable[[str], None]) -> bytes:
    size = config.vocab_size
    while True:
        try:
            model, skipped = _train_once(config, size, texts())
            break
        except RuntimeError as error:
            size = _possible_size(str(error), size)
    if size < config.vocab_size:
        say(f"the corpus is too small for {config.vocab_size} {side} pieces: the vocabulary has {size}")
    if skipped:
        say(f"SentencePiece learnt nothing from {skipped} {side} lines of over {_MAX_LINE_BYTES} bytes")
    return model


def _train_once(config: TokenizerConfig, size: int, texts: Iterator[str]) -> tuple[bytes, int]:
    """One attempt: the serialised model, and how many lines were too long to learn from."""
    skipped = 0
    raised: list[BaseException] = []

    def usable() -> Iterator[str]:
        nonlocal skipped
        try:
            for text in texts:
                if len(text.encode()) > _MAX_LINE_BYTES:
                    skipped += 1
                else:
                    yield text
        except BaseException as error:  # SentencePiece would make an error of its own of it
            raised.append(error)

    model = io.BytesIO()
    try:
        _learn(config, size, usable(), model)
    except RuntimeError:
        if not raised:
            raise
    if raised:
        raise raised[0]
    return model.getvalue(), skipped


def _learn(config: TokenizerConfig, size: int, texts: Iterator[str], model: io.BytesIO) -> None:
    """SentencePiece's own training; RuntimeError as it words it."""
    from sentencepiece import SentencePieceTrainer

    SentencePieceTrainer.train(
        sentence_iterator=texts,
        model_writer=model,
        model_type=config.type,
        vocab_size=size,
        byte_fallback=config.byte_fallback,
        normalization_rule_name=config.normalization,
        character_coverage=config.character_coverage,
        user_defined_symbols=config.symbols,
        max_sentence_length=_MAX_LINE_BYTES,
        num_threads=1,  # more threads sum in another order: the model would depend on the machine
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        minloglevel=2,
    )


def _possible_size(message: str, size: int) -> int:
    """The largest vocabulary that SentencePiece says this corpus allows; DataError when its complaint is another."""
    allowed = re.search(r"value <= (\d+)", message)
    if allowed and int(allowed[1]) < size:
        return int(allowed[1])
    needed = re.search(r"smaller than required_chars\. (\d+) vs (\d+)", message)
    if needed:
        raise ConfigError(f"tokenizer.vocab_size ({size}) must be over {needed[2]}: the text has that many characters")
    if allowed or "high" in message or "too large" in message:
        return size * 3 // 4
    raise DataError(f"SentencePiece could not be trained: {' '.join(message.split())[:300]}")
