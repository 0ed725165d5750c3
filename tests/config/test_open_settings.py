"""Which settings are left to be chosen from the training text: those that nobody has set."""

from pathlib import Path

from rows import each_row

from tolka.auto.memory import MEMORY
from tolka.auto.rules import FRESH, TUNED
from tolka.config.command_line import names_model, train_config, with_recipe

OWN_TEXT = ["corpus=files", "corpus.train=text", "corpus.source=xa", "corpus.target=xb"]
ENDS = {"trainer.updates", "trainer.epochs"}


def open_with(*settings: str) -> set[str]:
    """The open settings of a text of one's own."""
    return {*train_config([*OWN_TEXT, *settings]).run.open_settings}


@each_row(
    ("settings", "closed"),
    [
        ([], set()),
        (["run.seed=2", "trainer.device=cpu"], set()),  # which are never chosen
        (["corpus.train=other"], set()),
        (["model.dropout=0.25"], {"model.dropout"}),
        (["model.family=transformer", "model.layers=2"], {"model.layers"}),
        (["model.dropout=null", "model.layers=0"], set()),  # typed as they are while they are open
        (["batching.tokens=777"], {"batching.tokens"}),
        (["optimizer.lr=0.01"], {"optimizer.lr"}),
        (["optimizer=muon"], {"optimizer", "optimizer.lr"}),  # which has a rate of its own
        (["trainer.updates=50"], ENDS),  # an end is the only one
        (["trainer.epochs=2"], ENDS),
        (["scheduler.warmup=9"], {"scheduler.warmup"}),
        (["scheduler=linear"], {"scheduler", "scheduler.horizon", "scheduler.warmup", "trainer.patience", *ENDS}),
        (["trainer.metric=chrf", "trainer.patience=3"], {"trainer.metric", "trainer.patience"}),
        (["tokenizer.vocab_size=500"], {"tokenizer.vocab_size"}),
        (["tokenizer.type=char"], {"tokenizer.vocab_size"}),  # as many as there are
        (["tokenizer.type=unigram"], set()),
    ],
)
def test_a_model_to_be_chosen(settings: list[str], closed: set[str]) -> None:
    assert open_with("model=auto", *settings) == {*FRESH} - closed


@each_row("settings", [["model=lstm"], ["model=transformer_tiny", "model.dropout=0.2"]])
def test_of_a_named_model_nothing_is_open(settings: list[str]) -> None:
    assert open_with(*settings) == set()


@each_row(
    ("settings", "closed"),
    [
        ([], set()),
        (["finetuning.lora_rank=4"], {"finetuning.lora_rank"}),
        (["batching.tokens=777", "trainer.accumulate=2"], {"batching.tokens", "trainer.accumulate"}),
        (["trainer.updates=50", "scheduler.warmup=2"], {*ENDS, "scheduler.warmup"}),
        (["tokenizer.extend=0"], {"tokenizer.extend"}),
    ],
)
def test_a_model_to_start_from(trained: Path, settings: list[str], closed: set[str]) -> None:
    """What is open is of the training and of the memory that it takes; sizes are the model's."""
    found = open_with(f"run.init_from={trained}", *settings)
    assert found == {*TUNED, *MEMORY} - closed
    assert not found & {"model", "model.layers", "tokenizer.vocab_size"}


def test_an_experiment_that_is_named_leaves_nothing_open(trained: Path) -> None:
    assert open_with(f"run.init_from={trained}", "experiment=finetune") == set()


@each_row(
    ("typed", "expected"),
    [
        ("model", True),
        ("run.init_from", True),
        ("model.heads", True),
        ("model.d_ff trainer.updates", True),
        ("", False),
        ("trainer.updates optimizer.lr", False),
        ("model.d_model model.layers model.decoder_layers model.dropout model.family", False),
        ("model.parameters", True),  # of a named one
    ],
)
def test_what_names_a_model(typed: str, expected: bool) -> None:
    assert names_model(typed.split()) is expected
    settings = [f"{key}=1" for key in typed.split()]
    assert ("model=auto" in with_recipe(["corpus.train=text", *settings])) is not expected
