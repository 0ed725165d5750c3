"""Hugging Face's transformers as a side of the parity gate."""

import importlib.util
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from tolka.data.batch import EOS
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import CONFIG, TOKENIZER_CONFIG, Family, Foreign
from tolka.interchange.parity import LIMIT, Logits, Pairs
from tolka.system.progress import Say
from tolka.text.direction import UNKNOWN, Direction
from tolka.tokenizer.vocabulary import Vocabulary

_AT_ONCE = 16  # lines translated in a batch


@contextmanager
def checked_copy(foreign: Foreign, positions: int) -> Iterator[Path]:
    """Yield a folder for transformers with the checked files of another. positions: see `Family.compared_config`."""
    # A folder may come from anybody: transformers gets no file and no setting that nobody has checked.
    folder, family = foreign.folder, foreign.family
    about = {key: foreign.about.get(key) for key in family.TOKENIZER_KEYS}
    with TemporaryDirectory() as temporary:
        work = Path(temporary)
        for name in (*family.TOKENIZER_FILES, *folder.weight_files()):
            if folder.has(name):
                (work / name).symlink_to(folder.file(name).resolve())
        allowed = {key: value for key, value in about.items() if isinstance(value, bool | str)}
        files = {CONFIG: family.compared_config(foreign, positions), TOKENIZER_CONFIG: allowed}
        for name, values in {**files, **family.compared_files(foreign)}.items():
            (work / name).write_text(json.dumps(values), encoding="utf-8")
        yield work


def uncompared_section(family: Family, say: Say) -> str:
    """Report why a model is not compared with transformers; return the section of its card, "" if it can be."""
    if family.MODEL and importlib.util.find_spec("transformers"):
        return ""
    reason = "transformers is not installed" if family.MODEL else f"transformers does not know {family.NAME}"
    say(f"note: {reason}, so that its translations were not compared with tolka's")
    return f"## Parity\n\nNot compared: {reason}.\n"


class TransformersSide:
    """A family's classes in transformers, on the CPU in fp32. Nothing is downloaded, and no code of a folder is run."""

    def __init__(
        self,
        folder: Path,
        family: Family,
        target: Vocabulary,
        limit: int = LIMIT,
        shown: Path | None = None,
        direction: Direction = UNKNOWN,
        before: str = "",
    ) -> None:
        """target: the target side's vocabulary, for the order of logits. limit: as for `TolkaSide`.

        direction: for a model with tags of languages. before: what the user of `transformers` has to put before each
        source, as `>>ko<<`. shown: the folder's name in messages, if `folder` is temporary.
        CheckpointError if transformers cannot load the folder; ConfigError if transformers cannot be imported.
        """
        shown, self._before = shown or folder, before
        try:
            transformers = importlib.import_module("transformers")
        except ImportError as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"transformers is installed, and cannot be imported ({reason}): repair it, or uninstall it, and "
                "nothing is compared with it"
            ) from None
        with _quiet():
            self.name = f"transformers {transformers.__version__}"
            local: dict[str, Any] = {"local_files_only": True}
            try:
                self._tokenizer = getattr(transformers, family.TOKENIZER).from_pretrained(str(folder), **local)
                model = getattr(transformers, family.MODEL).from_pretrained(str(folder), dtype=torch.float32, **local)
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".replace(str(folder), str(shown)).split())[:300]
                raise CheckpointError(f"{self.name} cannot load {shown}: {reason}") from None
            self._model = model.eval()
            config = self._model.config
            self._start = config.decoder_start_token_id
            # M2M-100's tokenizer leaves tags in its text, and writes <unk> for rows without a subword.
            order, hidden = target.ids_in_original_order(), target.not_in_targets
            dropped = [place for place, number in enumerate(order) if target.subwords[number] in hidden]
            self._dropped, first = {self._start, *dropped}, None
            never = {config.pad_token_id, config.bos_token_id, *dropped} - {None}  # as no search of ours chooses them
            if target.tags:
                self._tokenizer.src_lang, self._tokenizer.tgt_lang = direction
                first = self._tokenizer.convert_tokens_to_ids(target.tags[direction.target])
            # All of it is set here: a generation_config.json may ask for beams, penalties or another length.
            self._search = transformers.GenerationConfig(
                num_beams=1,
                do_sample=False,
                max_length=None,
                max_new_tokens=limit + (first is not None),
                bad_words_ids=[[number] for number in sorted(never)],
                pad_token_id=config.pad_token_id,
                bos_token_id=config.bos_token_id,
                eos_token_id=config.eos_token_id,
                forced_bos_token_id=first,
                decoder_start_token_id=self._start,
            )
            self._model.generation_config = self._search
        # The family's id of each of our subwords from </s> on.
        ours = {number: place for place, number in enumerate(order)}
        self._columns = [ours[number] for number in range(EOS, len(target.subwords))]

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line."""
        found = list[str]()
        with _quiet(), torch.inference_mode():
            for start in range(0, len(lines), _AT_ONCE):
                sources = [self._before + line for line in lines[start : start + _AT_ONCE]]
                batch = self._tokenizer(sources, return_tensors="pt", padding=True)
                rows = self._model.generate(**batch, generation_config=self._search).tolist()
                # MarianTokenizer takes the source's id of <pad> for the target's, where each side has a vocabulary.
                rows = [[number for number in row if number not in self._dropped] for row in rows]
                found += self._tokenizer.batch_decode(
                    rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
                )
        return found

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        """Return the logits of each pair, one by one, so that nothing is padded; see `Side`."""
        logits_of_pairs = list[Logits]()
        with _quiet(), torch.inference_mode():
            for source, target in pairs:
                batch = self._tokenizer([self._before + source], text_target=[target], return_tensors="pt")
                # The decoder reads its first token and the target without its </s>.
                decoder = torch.cat([torch.tensor([[self._start]]), batch.pop("labels")[:, :-1]], dim=1)
                logits = self._model(**batch, decoder_input_ids=decoder).logits[0]
                logits_of_pairs.append(logits[:, self._columns].numpy().astype(np.float32, copy=False))
        return logits_of_pairs


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' warnings and progress bars, which are not about this model."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
