"""The YAML files and the dataclasses say the same."""

import dataclasses
import importlib.util
import re
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from rows import each_row

from tolka.config.choices import choices_of, known_keys, literal_kind
from tolka.config.command_line import evaluate_config, train_config, translate_config
from tolka.config.schemas import _CLASSES as CLASSES
from tolka.config.schemas import GROUPS, REGISTRIES, rebuild
from tolka.config.typed import quote_setting
from tolka.errors import ConfigError
from tolka.models.base import MODELS
from tolka.optim.optimizers.base import OPTIMIZERS
from tolka.optim.schedules.base import SCHEDULERS
from tolka.optim.schedules.formulas import InverseSqrtConfig
from tolka.options.parsing import build
from tolka.search.options import SEARCHES
from tolka.system.package_data import config_dir
from tolka.text.corpora.base import CORPORA

ROOT = Path(__file__).parents[2]


def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_configs", ROOT / "scripts" / "write_configs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = writer()


def test_each_yaml_equals_its_dataclass() -> None:
    """scripts/write_configs.py would write what is there."""
    for name, config in WRITER.FILES.items():
        assert (config_dir() / f"{name}.yaml").read_text(encoding="utf-8") == WRITER.as_yaml(config)


def test_no_yaml_but_those_and_the_experiments() -> None:
    found = {str(path.relative_to(config_dir()).with_suffix("")) for path in config_dir().glob("*/*.yaml")}
    assert {name for name in found if not name.startswith("experiment/")} == set(WRITER.FILES)


def test_every_field_has_its_help_line() -> None:
    for config in WRITER.FILES.values():
        helps = WRITER.help_lines(type(config))
        assert [f.name for f in dataclasses.fields(config) if not helps.get(f.name, "").strip()] == []


def test_every_registered_name_has_a_yaml() -> None:
    registries = (("corpus", CORPORA), ("model", MODELS), ("optimizer", OPTIMIZERS), ("scheduler", SCHEDULERS))
    for group, registry in (*registries, ("search", SEARCHES)):
        named = {
            yaml.safe_load((config_dir() / group / f"{name}.yaml").read_text())["name"] for name in choices_of(group)
        }
        assert named == set(registry.names())


def test_every_experiment_and_model_is_valid_and_gives_its_name_to_the_run() -> None:
    for experiment in choices_of("experiment"):
        assert train_config([f"experiment={experiment}"]).run.folder == Path("runs") / experiment
    for model in choices_of("model"):
        assert train_config([f"model={model}"]).run.name == f"sample-en-ko-{model}"


def test_sizes_of_the_named_transformers() -> None:
    widths = {m: dataclasses.asdict(train_config([f"model=transformer_{m}"]).model)["d_model"] for m in ("tiny", "big")}
    assert widths == {"tiny": 128, "big": 1024}


def test_a_stored_configuration_is_the_same_again() -> None:
    config = train_config(["experiment=sample", "corpus.test=[a,b]", "optimizer.lr=0.5"])
    assert rebuild(config.as_dict()) == config


def test_promised_names() -> None:
    """Users and scripts rely on them."""
    promised = [
        *("run.dir", "run.name", "run.seed", "corpus.train", "corpus.valid", "corpus.test", "corpus.root"),
        *("corpus.source", "corpus.target", "tokenizer.vocab_size", "batching.tokens", "model.d_model", "model.heads"),
        *("model.layers", "model.dropout", "optimizer.lr", "scheduler.warmup", "trainer.updates"),
        *("trainer.validate_every", "trainer.log_every", "trainer.patience", "trainer.precision", "trainer.device"),
        *("search.beam_size", "search.length_penalty"),
    ]
    assert set(promised) <= set(known_keys("train"))


def test_paths_are_quoted_for_hydra() -> None:
    for override, quoted in (
        ("corpus.train=말뭉치/a=b(1)", "corpus.train='말뭉치/a=b(1)'"),
        ("corpus.train=it's", r"corpus.train='it\'s'"),
        ("corpus.test=[a b,c(1)]", "corpus.test=['a b','c(1)']"),
        ("corpus.columns=[Grüße aus Köln.,I'm here.]", r"corpus.columns=['Grüße aus Köln.','I\'m here.']"),
        ("corpus.train='as it is'", "corpus.train='as it is'"),
        ("corpus.train=[[a b,2,4],[c(1),d],e]", "corpus.train=[['a b','2','4'],['c(1)','d'],'e']"),
        ("corpus.train=[['a,b',\"[c]\"],[ab]*.tsv]", "corpus.train=[['a,b',\"[c]\"],'[ab]*.tsv']"),
        ("trainer.updates=10", "trainer.updates=10"),
        ("corpus=files", "corpus=files"),
    ):
        assert quote_setting(override) == quoted


def test_a_list_of_names_arrives_as_it_was() -> None:
    def columns(typed: str) -> list[str]:
        config: Any = train_config(["corpus=files", f"corpus.columns={typed}"]).corpus
        return list(config.columns)

    assert columns("[나는 너를 사랑해.,'A, b.']") == ["나는 너를 사랑해.", "A, b."]
    assert columns("You, too.") == ["You, too."]


def test_quoted_paths_arrive_as_they_were() -> None:
    for path in ("말뭉치/a=b(1)", "it's {here}", "a\\b", "a b~c$d", "end\\", "x\\'y"):
        assert train_config(["corpus=files", f"corpus.train={path}"]).corpus.train == [path]  # type: ignore[attr-defined]


@each_row(
    ("overrides", "complaint"),
    [
        (["model=transfomer_tiny"], "unknown model 'transfomer_tiny'. Did you mean 'transformer_tiny'?"),
        (["modle.layers=3"], "unknown key 'modle.layers'. Did you mean 'model.layers'?"),
        (["trainer.update=3"], "unknown key 'trainer.update'. Did you mean 'trainer.updates'?"),
        (["trainer.updates=many"], "trainer.updates ('many') must be a whole number"),
        (["trainer.updates=1.5"], "trainer.updates (1.5) must be a whole number"),
        (["tokenizer.shared=3"], "tokenizer.shared (3) must be true or false"),
        (["model.heads=3"], "model.d_model (256) must be a multiple of model.heads (3)"),
        (["corpus.target=en"], "corpus.source and corpus.target are both 'en'"),
        (["trainer.updates=50", "scheduler.warmup=60"], "scheduler.warmup (60) is longer than the training"),
        (
            ["scheduler=cosine", "scheduler.horizon=0"],
            "and these are not limited: set them, or scheduler.horizon=20000 to have it fall until trainer.updates",
        ),
        (["scheduler=wsd", "scheduler.horizon=0", "trainer.patience=0"], "and these are not limited: set them, or "),
        (["experiment=null"], "unknown experiment 'null'."),
        (["trainer.threads=3000000000"], "trainer.threads (3000000000) must be at most 1024"),
        (["updates"], "'updates' is not a setting; write key=value"),
        (
            ["scheduler.horizon=3000"],
            "the chosen scheduler has no key scheduler.horizon; those that have it: scheduler=cosine, ",
        ),
        (
            ["optimizer=adafactor", "optimizer.beta1=0.9"],
            "the chosen optimizer has no key optimizer.beta1; those that have it: ",
        ),
        (["model.dropout=0,3"], "'model.dropout=0,3' has several values where one is expected; decimals have a point"),
        (
            ["model.share_embeddings=all", "tokenizer.shared=false"],
            "model.share_embeddings=all needs one vocabulary: set tokenizer.shared=true, or target_output",
        ),
    ],
)
def test_complaints_say_what_to_try(overrides: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        train_config(overrides)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_complaints_of_several_groups_come_together() -> None:
    with pytest.raises(ConfigError, match=r"batching.tokens \(10\).*model.d_model"):
        train_config(["batching.tokens=10", "model.heads=3"])


@pytest.mark.parametrize(
    ("idle", "cure"),
    [
        ("optimizer.lr=0.1", "scheduler=constant"),
        ("finetuning.lora_alpha=4", "finetuning.lora_rank=2"),
    ],
)
def test_an_option_without_effect_is_said(idle: str, cure: str, trained: Path) -> None:
    always = ["scheduler=noam", "optimizer=adamw", "report.page=false"]
    if idle.startswith("finetuning"):
        always += [f"run.init_from={trained}", "experiment=finetune", "optimizer.lr=0.1"]
    before, notes, cured = list[str](), list[str](), list[str]()
    train_config(always, say=before.append)
    train_config([*always, idle], say=notes.append)
    (note,) = [each for each in notes if each not in before]
    assert note.startswith(f"note: {idle.split('=')[0]} has no effect without ")
    always = [setting for setting in always if setting.split("=")[0] != cure.split("=")[0]]
    train_config([*always, idle, cure], say=cured.append)
    assert not any("has no effect" in each and "optimizer.lr has" not in each for each in cured)


# Names, scores of any range, and what only a machine, a model or a file can tell; all are checked before a training
# reads its text.
FREE_TEXTS = {
    "recipe.name",
    "corpus.min_score",
    "corpus.name",
    "model.name",
    "optimizer.name",
    "scheduler.name",
    "search.name",
} | {
    *(
        "finetuning.freeze",
        "tokenizer.symbols",
        "tracking.names",
        "trainer.device",
        "decoding.device",
    )
}


@each_row(
    ("settings", "noted"),
    [
        (["model=lstm"], True),
        (["model=lstm", "optimizer.lr=0.002"], False),
        (["model=lstm", "optimizer=sgd"], False),
        (["model=lstm", "experiment=sample"], False),
        (["model=transformer_tiny"], False),
        (["model=auto", "model.family=rnn"], False),
    ],
)
def test_a_transformer_s_rate_for_a_recurrent_model_is_noted(settings: list[str], noted: bool) -> None:
    notes: list[str] = []
    train_config(["corpus=files", "corpus.train=t", "corpus.valid=v", *settings], say=notes.append)
    assert ("with optimizer.lr=0.004 a recurrent model" in "".join(notes)) == noted


def test_no_number_is_below_its_range_and_no_word_is_unknown() -> None:
    """Of every setting: -1 and a word that nobody knows are refused, unless they have a meaning."""
    for group, cls in ((each, cls) for each in (*CLASSES, *REGISTRIES) for cls in GROUPS.kinds(each)):
        kinds = typing.get_type_hints(cls)
        for name in (field.name for field in dataclasses.fields(cls)):
            key, kind = f"{group}.{name}", kinds[name]
            wrong = "zebra" if kind in (str, list[str]) else -1
            if kind is bool or key in FREE_TEXTS or literal_kind(key):
                continue
            with pytest.raises(ConfigError, match=re.escape(key)):
                build(cls, {name: wrong}, group)


def test_each_documented_end_of_a_range_is_checked() -> None:
    for setting in (
        *("run.licence=foo", "run.licence=CC-BY-4.0", "run.seed=9223372036854775808", "run.name=a/b"),
        *("tokenizer.character_coverage=0.9", "tokenizer.character_coverage=1.1", "tokenizer.vocab_size=100"),
        *("tokenizer.vocab_size=1000001", "trainer.threads=1025", "trainer.average=1", "trainer.ema=1"),
        "trainer.label_smoothing=1",
        *("model.dropout=1", "optimizer.beta1=1"),
        *("scheduler=cosine scheduler.floor=1.5", "search=sampling search.top_p=1.1", "search.beam_size=1000001"),
        *("search.n_best=9", "batching.sampling=1.5", "cleaning.min_letters=1.1", "metrics.bootstrap=39"),
        *("corpus.temperature=0.5", "corpus.valid=0.6", "corpus.weights=[-1]"),
    ):
        settings = setting.split()
        group = settings[-1].split(".")[0]
        own = ["corpus=files", "corpus.train=a"] if group == "corpus" else []
        with pytest.raises(ConfigError, match=re.escape(settings[-1].split("=")[0]) + r" \("):
            opened(train_config([*own, *settings]))


def opened(config: Any) -> None:
    """Look at the files of a corpus, as held-out sets are checked then."""
    config.corpus.open()


def test_the_other_commands() -> None:
    assert translate_config(["search=greedy", "decoding.tokens=7"]).decoding.tokens == 7
    config: Any = evaluate_config(["files.source=a b", "search.beam_size=2"])
    assert (config.files.source, config.search.beam_size) == ("a b", 2)


def test_settings_taken_as_typed_are_paths_names_and_sentences() -> None:
    """True of a list of texts, and of a file that is only read, whose name may be any bytes."""
    known = {*known_keys("train"), *known_keys("evaluate"), *known_keys("translate")}
    literal = {key: kind for key in known if (kind := literal_kind(key))}
    texts = {key for key, (is_list, _) in literal.items() if is_list}
    splits = {f"corpus.{key}" for key in ("train", "valid", "test")}
    assert texts == splits | {
        "corpus.columns",
        "tokenizer.model",
        "batching.augment",
        "cleaning.own",
        "files.reference",
    }
    files = {"files.hypothesis", "files.reference", "files.source", "corpus.root"}
    read_only = {"input.prefix", "input.memory", "search.glossary", "search.banned", "corpus.glossary"}
    assert {key for key, (_, any_bytes) in literal.items() if any_bytes} == splits | files | read_only
    names = {f"corpus.{key}" for key in ("path", "source", "target", "subset", "revision", "like", "score")}
    runs = {f"run.{key}" for key in ("dir", "name", "prepared", "init_from")}
    names |= read_only | {"input.column", "decoding.source", "decoding.target"}
    names |= {"files.language", "tracking.project", "metrics.command", "trainer.teacher"}
    assert literal.keys() - texts - files == names | runs


@pytest.mark.slow
def test_an_experiment_s_keys_give_way_to_a_kind_that_lacks_them() -> None:
    notes: list[str] = []
    config = train_config(["experiment=multi30k_tiny", "scheduler=inverse_sqrt"], say=notes.append)
    assert (config.scheduler, config.model.layers) == (InverseSqrtConfig(warmup=500), 4)  # type: ignore[attr-defined]
    assert notes == [
        "note: scheduler.warmup is 500, as experiment=multi30k_tiny sets it; "
        f"scheduler=inverse_sqrt alone would have {InverseSqrtConfig().warmup}",
        "note: scheduler.horizon (6000), which experiment=multi30k_tiny sets, is left out: "
        "scheduler=inverse_sqrt has no such key",
    ]
    train_config(["experiment=multi30k_tiny", "optimizer=muon", "optimizer.lr=0.02"], say=notes.append)
    own_kinds = ["scheduler=linear", "model=transformer_tiny"]
    train_config(["experiment=multi30k_tiny", *own_kinds], say=notes.append)
    assert len(notes) == 2
    with pytest.raises(ConfigError, match=r"unknown key 'scheduler\.horizon'\. Known: name, warmup"):
        train_config(["experiment=multi30k_tiny", "scheduler=inverse_sqrt", "scheduler.horizon=9"])


def test_every_line_of_the_ablation_is_a_configuration() -> None:
    text = (ROOT / "scripts" / "ablate_multi30k_tiny.sh").read_text(encoding="utf-8").replace("\\\n", "")
    common = re.search(r"mt-train (experiment=\S+) run\.name=\S+ (.*?) \$\{corpus", text)
    changes = [line.split()[2:] for line in text.splitlines() if line.startswith("change ")]
    assert common is not None
    assert len(changes) > 4
    made = [train_config([common[1], *common[2].split(), *change]) for change in changes]
    assert len({repr(config) for config in made}) == len(made)
