"""Rules for characters in a SentencePiece model, for programs that do not clean the text before it."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from tolka.text.scripts import letters_of
from tolka.tokenizer.sentencepiece_model import model_proto

_LETTERS = "กກကកאب"  # of the scripts in which a character's fate depends on the letters beside it


def with_rules(model: bytes, rewrite: Callable[[str], str], language: str) -> bytes:
    """Return a SentencePiece model that replaces control characters and blanks as `rewrite` does in the language.

    It is the same model if that has rules of its own, or if `rewrite` changes nothing.
    """
    from sentencepiece import SentencePieceTrainer

    result, trained = model_proto(model), BytesIO()
    letters = letters_of(language)
    beside = next((letter for letter in _LETTERS if letters and letters.match(letter)), "a")
    # All control characters and blanks are in the first plane.
    unprintable = [character for character in map(chr, range(1, 0x10000)) if not character.isprintable()]
    pairs = [(each, rewrite(f"{beside}{each}{beside}")[1:-1]) for each in unprintable]
    rules = [f"{ord(each):X}\t{f'{ord(to):X}' if to else ''}\n" for each, to in pairs if to != each]
    if not rules or result.normalizer_spec.precompiled_charsmap:
        return model
    # SentencePiece compiles rules only when it trains: here the smallest model, of which only the rules are used.
    with TemporaryDirectory() as work:
        file = Path(work) / "rules.tsv"
        file.write_text("".join(rules), encoding="ascii")
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a"]),
            model_writer=trained,
            model_type="char",
            vocab_size=8,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(file),
            minloglevel=2,
        )
    result.normalizer_spec.name = "user_defined"
    result.normalizer_spec.precompiled_charsmap = model_proto(trained.getvalue()).normalizer_spec.precompiled_charsmap
    return bytes(result.SerializeToString())
