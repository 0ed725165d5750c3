"""Train SentencePiece models: on the training text only, and the same for the same text on every machine."""

import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from tolka.errors import ConfigError, DataError, TolkaError
from tolka.system.child_processes import end_with_parent, start
from tolka.system.progress import Say
from tolka.text.pairs import Pair
from tolka.tokenizer.special_tokens import BOS, EOS, PAD, UNK
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig

_MAX_LINE_BYTES = 16384
_IN_PROCESS_CHARACTERS = 500_000  # with this much text, training takes half a second (unigram, 8000 subwords)
_SPECIAL = 4 + 256  # subwords that are special ids, or bytes
# First bytes of the lines to the child, and of its answer: a text may look like anything else.
_TEXT, _END, _MODEL, _FAILED = b"+", b".\n", b"+", b"-"


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
            skipped = list[int]()
            model = _learn(config, size, _short_lines(learnt(), skipped))
            break
        except RuntimeError as error:
            if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
                # A tenth of the subwords is left for longer ones than characters.
                characters = min(characters, size - _SPECIAL) * 9 // 10
                config, learnt = _with_common_characters(config, characters, texts, int(needed[1]), side, say)
            else:
                size = _possible_size(str(error), size)
    if size < config.vocab_size:
        say(f"the corpus is too small for {config.vocab_size} {side} subwords: the vocabulary has {size}")
    if skipped:
        say(f"SentencePiece learnt nothing from {len(skipped)} {side} lines of over {_MAX_LINE_BYTES} bytes")
    return model


def _short_lines(texts: Iterator[str], skipped: list[int]) -> Iterator[str]:
    """Yield the lines that are short enough to learn from; add the sizes of the others to `skipped`."""
    for text in texts:
        if (size := len(text.encode())) > _MAX_LINE_BYTES:
            skipped.append(size)
        else:
            yield text


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
        "pad_id": PAD,
        "bos_id": BOS,
        "eos_id": EOS,
        "unk_id": UNK,
        "minloglevel": 2,
    }
    head, characters = [], 0
    for text in texts:
        head.append(text)
        characters += len(text)
        if characters > _IN_PROCESS_CHARACTERS:
            return _run_in_child(options, chain(head, texts))
    return _run_in_process(options, head)


def _run_in_process(options: Mapping[str, Any], texts: Iterable[str]) -> bytes:
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


def _run_in_child(options: Mapping[str, Any], texts: Iterator[str]) -> bytes:
    """Run SentencePiece's training in a child process."""
    # It may take an hour, during which Python handles no signal: Ctrl-C ends the child.
    child = start(__name__, answers=True)
    to_child, from_child = child.process.stdin, child.process.stdout
    assert to_child is not None
    assert from_child is not None
    try:
        with suppress(BrokenPipeError):  # the child has ended; its reason is reported below
            to_child.write(json.dumps(options).encode() + b"\n")
            to_child.writelines(_TEXT + text.encode() + b"\n" for text in texts)
            to_child.write(_END)
            to_child.flush()
        answer = from_child.read()
        if child.process.poll() not in (None, 0) or not answer:
            raise TolkaError(f"the process that trained SentencePiece ended: {child.reason()}")
    finally:
        child.end()
    if answer[:1] == _FAILED:
        raise RuntimeError(answer[1:].decode())
    return answer[1:]


def main() -> None:
    """Run in the child process: options and texts on standard input, the model or the error on standard output."""
    options = json.loads(sys.stdin.buffer.readline())

    def texts() -> Iterator[str]:
        for line in sys.stdin.buffer:
            if line == _END:
                break
            yield line[1:-1].decode()
        end_with_parent()

    try:
        answer = _MODEL + _run_in_process(options, texts())
    except RuntimeError as error:
        answer = _FAILED + str(error).encode()
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)  # the thread of `end_with_parent` still reads


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


if __name__ == "__main__":
    main()
