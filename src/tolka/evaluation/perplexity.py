"""Perplexity of the references, also per word and per character to compare vocabularies."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice

import torch

from tolka.data.batch import Batch
from tolka.data.loader import in_order
from tolka.data.store import PartTags, TokenStore
from tolka.distributed.ranks import ALONE, Ranks
from tolka.errors import DataError
from tolka.losses.cross_entropy import LossSum, Objective
from tolka.metrics.languages import has_spaces
from tolka.models.base import Seq2Seq
from tolka.system.device import Precision
from tolka.system.memory import is_out_of_memory
from tolka.system.number_format import number_text
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.pairs import Pair
from tolka.tokenizer.language_tags import NO_TAGS, Tags
from tolka.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Perplexity:
    """Sums over the references, and the perplexities that follow from them.

    nll: -log p in nats, without label smoothing, </s> included. words: separated by blanks; 0 for a language that is
    written without. characters: with blanks. skipped: pairs left out because a side is blank or too long.
    """

    nll: float
    tokens: int
    words: int
    characters: int
    pairs: int
    skipped: int

    def __str__(self) -> str:
        per_word = f"{number_text(self.per_word, 4)} per word, " if self.words else ""
        return (
            f"PPL {number_text(self.per_token, 4)} per token ({self.tokens} tokens, </s> counted), "
            f"{per_word}{self.bits_per_character:.4f} bits per character; label smoothing left out"
        )

    @property
    def per_token(self) -> float:
        """exp(nll / tokens), as in training curves; depends on the vocabulary."""
        return exp_nats(self.nll / self.tokens)

    @property
    def per_word(self) -> float:
        """exp(nll / words): comparable between vocabularies; NaN for languages without spaces between words."""
        return exp_nats(self.nll / self.words) if self.words else math.nan

    @property
    def bits_per_character(self) -> float:
        """nll / (ln 2 * characters): comparable between vocabularies, in any language."""
        return self.nll / math.log(2) / self.characters

    def as_dict(self) -> dict[str, float | int]:
        """Return plain values for JSON, where a perplexity that is infinite or NaN becomes null."""
        return {
            "ppl": self.per_token,
            "ppl_word": self.per_word,
            "bits_per_character": self.bits_per_character,
            **asdict(self),
        }


def exp_nats(nats: float) -> float:
    """Return e ** nats, inf where a float overflows (above 1e304)."""
    # Per word this happens in languages without blanks between words, where a word is a line.
    return math.exp(nats) if nats < 700 else math.inf


class PerplexityMeter:
    """Measures the perplexity of a set of pairs, which is tokenised once."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        tokens: int,
        name: str = "this text",
        characters: CharacterForm = KEEP,
        language: str = "",
        tags: Tags = NO_TAGS,
    ) -> None:
        """tokens: ceiling on a batch's padded tokens; longer sentences and blank ones are skipped and counted.

        characters: their form in the model's training text, which the pairs get. language: of the target, which decides
        whether there are words to count. tags: of the direction.
        DataError, with `name`, when no pair is left.
        """
        pairs = list(map(characters.pair, pairs))
        sources = tokenizer.encode_source([pair.source for pair in pairs])
        targets = tokenizer.encode_target([pair.target for pair in pairs])
        most = tokens - max(map(len, tags))
        usable = [0 < len(s) < most and 0 < len(t) < most for s, t in zip(sources, targets, strict=True)]
        measured = [i for i, fits in enumerate(usable) if fits]
        if not measured:
            raise DataError(
                f"no pair of {name} can be measured: each has a blank side or one of {tokens} subwords or more"
            )
        store = TokenStore.from_rows([sources[i] for i in measured], [targets[i] for i in measured])
        self._store = replace(store, tags=PartTags((tags,)))
        self._tokens = tokens
        self._words = sum(len(pairs[i].target.split()) for i in measured) if has_spaces(language) else 0
        self._characters = sum(len(pairs[i].target) for i in measured)
        self._skipped = len(pairs) - len(measured)

    def measure(
        self, model: Seq2Seq, precision: Precision, tick: Callable[[], object] = lambda: None, ranks: Ranks = ALONE
    ) -> Perplexity:
        """Measure in one pass with teacher forcing; call `tick` after each batch. ranks: share the batches out."""
        objective = Objective(model, label_smoothing=0.0).eval()
        nll, tokens = 0.0, 0
        with torch.no_grad(), precision.autocast():
            for batch in islice(in_order(self._store, self._tokens), ranks.rank, None, ranks.size):
                for sums in self._sums(objective, batch, precision.device):
                    nll += sums.nll.double().item()
                    tokens += sums.tokens
                tick()
        # Sums and counts of all ranks, divided once: a mean of means would weigh short batches too much.
        nll, tokens = map(sum, zip(*ranks.gather((nll, tokens)), strict=True))
        return Perplexity(nll, tokens, self._words, self._characters, len(self._store), self._skipped)

    def _sums(self, objective: Objective, batch: Batch, device: torch.device) -> Iterator[LossSum]:
        """Yield the sums of the batch, or of its halves if it does not fit in memory."""
        try:
            yield objective(batch.to(device))
            return
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or len(batch.source) == 1:
                raise
        # Outside the except block, whose error keeps the frames, and thus the tensors, of the failed pass alive.
        torch.cuda.empty_cache()
        for half in batch.halves():
            yield from self._sums(objective, half, device)
