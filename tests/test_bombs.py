"""Small files that would take much memory or time are refused before they are read."""

import gzip
import os
from functools import partial
from pathlib import Path

import pytest
from damage import complaint

from tolka.errors import ConfigError
from tolka.search.options import BeamConfig, SamplingConfig
from tolka.terminology.glossary import read_banned, read_glossary
from tolka.text.direction import Direction
from tolka.text.lines import count_and_digest, digest_of


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_as_a_list_of_terms_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (digest_of, count_and_digest, read_banned, lambda path: read_glossary(path, Direction("en", "de"))):
        assert "it is a pipe or a device, and must be a file" in complaint(partial(read, tmp_path / "pipe"))


@pytest.mark.slow
def test_lists_of_terms_have_a_ceiling(tmp_path: Path) -> None:
    (tmp_path / "blank.tsv.gz").write_bytes(gzip.compress(b"\n" * 60_000_000))  # 58 KB
    said = complaint(lambda: read_glossary(tmp_path / "blank.tsv.gz", Direction("en", "de")))
    assert said.endswith("blank.tsv.gz:1000001: at most 1000000 lines and 268435456 bytes are read; leave out the rest")
    (tmp_path / "banned").write_text("".join(f"word{number}\n" for number in range(200_000)))
    assert "banned:50001: at most 50000 lines" in complaint(lambda: read_banned(tmp_path / "banned"))


def test_a_beam_has_a_ceiling() -> None:
    with pytest.raises(ConfigError, match=r"search.beam_size \(1000000\) must be at most 4096"):
        BeamConfig(beam_size=1_000_000)
    with pytest.raises(ConfigError, match=r"search.n_best \(1000000\) must be at most 4096"):
        SamplingConfig(n_best=1_000_000)
