"""mt-train on one page: inputs, model, trainer, selection, test and page, each made from the one before.

The whole configuration goes no further down than this package: what a stage calls gets the settings that it uses.
"""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from tolka.auto.rules import choices_table
from tolka.config.schemas import TrainConfig, rebuild
from tolka.distributed.ranks import Ranks, others_present, process_group
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError, StoppedError, TolkaError
from tolka.evaluation.tester import Tester, TestResult
from tolka.evaluation.verdict import Verdict
from tolka.formats.any_model import load_any, tokenizer_of
from tolka.metrics.metric import References
from tolka.metrics.options import COMMAND
from tolka.metrics.scores import score
from tolka.model_directory.card import model_card
from tolka.model_directory.read import ResumeState, SavedModel, load_model, restoring
from tolka.model_directory.write import rescore
from tolka.run.chosen import with_chosen_settings
from tolka.run.initial_model import check_fits
from tolka.run.inputs import read_inputs
from tolka.run.judgement import judge
from tolka.run.provenance import record_provenance
from tolka.run.results import write_report
from tolka.run.texts import RunTexts
from tolka.run.training_setup import build_trainer, decoding_options, ready_device
from tolka.search.base import SearchConfig
from tolka.system import interrupts
from tolka.system.progress import Say, movable_native_lines
from tolka.training.callbacks import CALLBACKS, Beginning, Callback, Callbacks, Ending
from tolka.training.memory import check_memory
from tolka.training.run_folder import RunFolder, next_time, rank_log
from tolka.training.saved_settings import differences
from tolka.training.signals import listening_to_signals
from tolka.training.snapshots import read_last_state
from tolka.training.state import TrainState
from tolka.training.trainer import Trainer
from tolka.translation.translator import Translator
from tolka.version import __version__


@dataclass(frozen=True)
class TrainingOutcome:
    """What a training leads to. verdict: None in processes beside the first."""

    state: TrainState
    tests: list[TestResult]
    verdict: Verdict | None


def run_training(config: TrainConfig, say: Say) -> TrainingOutcome:
    """Train in the run's folder, or continue the run that is there, as one of the processes that train together.

    Leaves the best model in `best/` of that folder. say: receives the lines of the log. ConfigError as `claim`;
    StoppedError, with the state saved, when a signal asked for an end.
    """
    with movable_native_lines() as move_native_lines, process_group() as ranks, others_present():
        run = RunFolder(config.run.folder, ranks.rank, say)
        # Before the folder is claimed: a device that does not exist leaves no run behind.
        device = ready_device(config.trainer)
        try:
            # Each rank reads the text for itself; `claim` finds out where ranks have chosen differently.
            open_settings = config.run.open_settings
            config, chosen = with_chosen_settings(config)
            resuming = claim(run, config, ranks)
            if chosen:
                run.log(choices_table([asdict(choice) for choice in chosen]))
            if ranks.size > 1:
                move_native_lines(rank_log(run.path, ranks.rank))
            return _train(config, open_settings, run, resuming, device, ranks)
        finally:
            run.release()


def claim(run: RunFolder, config: TrainConfig, ranks: Ranks) -> bool:
    """Claim the folder for all ranks; return whether there is a run to resume. ConfigError as `RunFolder.claim`."""
    # Ranks with other settings or versions would wait for each other's sums for ever, or train different models.
    versions = {"tolka": __version__, "torch": str(torch.__version__)}
    first, *others = ranks.gather({**config.as_dict(), **versions})
    for rank, each in enumerate(others, 1):
        # Who set an equal value makes no difference.
        if differing := differences(first, each, lambda key: key.startswith("run.origins"), f"in process {rank}:"):
            raise ConfigError(
                f"the processes of this training have different settings: {'; '.join(differing)}; start all with "
                "the same command, on machines with the same versions"
            )
    # The first rank claims for all, and its error is raised on all: none waits for one that has ended.
    resuming, error = False, None
    if ranks.is_first:
        try:
            resuming = run.claim(config.as_dict(), _completed, config.run.override, config.may_change_on_resume)
        except TolkaError as found:
            error = found
    resuming, run.overridden, error = ranks.of_first((resuming, run.overridden, error))
    if error:
        raise error
    if run.overridden:
        run.log(f"run.override: from here on other settings hold: {'; '.join(run.overridden)}")
    return bool(resuming)


def _completed(saved: Any) -> Any:
    """Return a run's saved configuration with the defaults of newer settings; unchanged if it cannot be read."""
    try:
        return rebuild(saved).as_dict()
    except (TolkaError, TypeError, AttributeError):
        return saved


def _train(
    config: TrainConfig,
    open_settings: Sequence[str],
    run: RunFolder,
    resuming: bool,
    device: torch.device,
    ranks: Ranks,
) -> TrainingOutcome:
    """Go through the stages in a claimed folder; callbacks learn how it ended."""
    interrupts.check()
    chosen = {name: CALLBACKS.get(name)() for name in config.tracking.names}
    callback = Callbacks(chosen, run.log) if ranks.is_first else Callback()
    if start := config.run.init_from:  # before its weights are read
        check_fits(config, tokenizer_of(start), device, ranks.size)
    inputs = read_inputs(config, run.log, ranks, resuming=resuming)
    texts, search, decoding = inputs.texts, config.search, decoding_options(config.batching.tokens, device)
    if ranks.is_first:
        record_provenance(run, texts.corpus, device)
    # A store is named after a digest of all that determines its ids: another name means another text.
    resumed = read_last_state(run.path, inputs.prepared.folder.name) if resuming else None
    trainer = build_trainer(config, inputs, run, device, ranks, callback, resumed, open_settings)
    _check_alike(inputs.prepared.folder.name, trainer.step.objective.model.parameter_count(), ranks)
    if ranks.is_first:
        _try_metric(config, texts)
    _make_ready(trainer, resumed)
    try:
        callback.on_start(Beginning(run.path, config.as_dict(), run.log, trainer.state.update, run.history()))
        state = _fit(trainer, ranks, validate_start=inputs.parents.start is not None)
        samples = trainer.samples
        # The tests need the memory of the optimizer and the gradients.
        del trainer
        interrupts.check()
        # From the disk: the model in memory is the last one, not the best.
        best = load_model(run.best)
        translator = Translator.of(best, search, decoding, run.log)
        before = None
        if inputs.parents.start and texts.tests and config.metrics.bootstrap:
            before = _earlier_translator(start, search, decoding, run.log)
        tester = Tester(translator, before, config.metrics, run.leave, ranks)
        tests = _test(tester, run, texts, best.scores["update"], knows_more=bool(start))
        # With the warm-up that was settled for the minutes.
        done = replace(config, scheduler=replace(config.scheduler, warmup=state.warmup or config.scheduler.warmup))
        verdict = judge(done, run, inputs, best, translator, tests, state, ranks)
        if ranks.is_first:
            _write_scores(asdict(search), run, best, tests, verdict)
        # No rank ends while another still tests: the others would report it as lost.
        ranks.wait()
        interrupts.check()
        if ranks.is_first:
            if samples:
                run.log(samples)
            if config.report.page:
                _report(config, run, texts, translator, tests)
    # Also after Ctrl-C: a tracker would show the run as running for ever.
    except BaseException as error:
        callback.on_end(Ending(run.path, error=str(error) or type(error).__name__))
        if isinstance(error, KeyboardInterrupt):  # in a test, say; training says so itself
            run.log(next_time(run.path))
        raise
    callback.on_end(Ending(run.path, {result.name: result.as_dict() for result in tests}))
    return TrainingOutcome(state, tests, verdict)


def _check_alike(text: str, parameters: int, ranks: Ranks) -> None:
    """Raise ConfigError unless all processes have the same training text, and a model of the same size."""
    first, *others = ranks.gather((text, parameters))
    for rank, (other_text, size) in enumerate(others, 1):
        if (other_text, size) != first:
            raise ConfigError(
                f"processes 0 and {rank} have different training text, or models of {first[1]:,} and {size:,} "
                "parameters: every machine must see the same files, and have the same versions of tolka and of plugins"
            )


def _try_metric(config: TrainConfig, texts: RunTexts) -> None:
    """Score two lines by metrics.command, whose mistakes would else show after the training; ConfigError, DataError."""
    # A command without {reference} may have its own, for all lines of a test set.
    if "{reference}" in config.metrics.command and (texts.tests or config.trainer.metric == COMMAND):
        pairs = next(iter([*texts.tests.values(), texts.validation_pairs]))[:2]
        targets, sources = [pair.target for pair in pairs], [pair.source for pair in pairs]
        score(targets, References([targets], sources), replace(config.metrics, names=[], bootstrap=0))


def _make_ready(trainer: Trainer, resumed: ResumeState | None) -> None:
    """Load what a run has done so far, or try what a new one will need."""
    run, step = trainer.run, trainer.step
    if resumed:
        with restoring(run.last):
            trainer.resume(resumed)
        run.log(f"resuming from update {trainer.state.update} of {run.last}")
        return
    for line in check_memory(step, trainer.loader.largest(), trainer.validator.rehearse):
        run.log(line)


def _fit(trainer: Trainer, ranks: Ranks, validate_start: bool) -> TrainState:
    """Train; leaves `best/` and `last/`. StoppedError, with the state saved, when a signal asked for an end."""
    run = trainer.run
    with listening_to_signals(trainer) as received:
        state = trainer.fit(validate_start)
    # A signal may have reached one rank alone; all of them end with its exit code.
    received = next((each for each in ranks.gather(received) if each), received)
    if received:
        name = signal.Signals(received[0]).name
        raise StoppedError(f"stopped by {name} at update {state.update}; {next_time(run.path)}", 128 + received[0])
    if state.validated_start and not state.best_update:
        run.log(
            "note: no validation was better than the model that training started from, which stays the best: try a "
            "lower optimizer.lr, finetuning.freeze or finetuning.lora_rank, or more text of this kind"
        )
    return state


def _earlier_translator(
    start: str, search: SearchConfig, decoding: DecodingConfig, log: Say
) -> Translator[TorchEngine] | None:
    """Return a translator by the model that training started from; None, with a note, where it cannot be loaded."""
    # Its weights left the memory when training began.
    try:
        return Translator.of(load_any(start), search, decoding, log)
    except TolkaError as error:
        log(f"note: the scores before the training are not there: {error}")
        return None


def _test(tester: Tester, run: RunFolder, texts: RunTexts, update: int, knows_more: bool) -> list[TestResult]:
    """Translate each test set with the best model and score it.

    update: the best model's. knows_more: whether the model may know directions that are not trained.
    """
    trained = {*texts.corpus.directions}
    results = []
    for name, pairs in texts.tests.items():
        direction = texts.direction_of(name)
        results.append(tester(name, pairs, direction, zero_shot=direction not in trained and not knows_more))
    # A resumed run tests again: only the last test is of the model that is the best now.
    run.forget_tests()
    for result in results:
        timed = {"test": result.name, "sentences": result.sentences, "decoding_seconds": result.seconds}
        run.record({"update": update, **timed})
    return results


def _write_scores(
    search: Mapping[str, Any], run: RunFolder, best: SavedModel, tests: Sequence[TestResult], verdict: Verdict | None
) -> None:
    """Write the scores of the tests and the verdict into `best/`."""
    tested = {"search": search, "test": {result.name: result.as_dict() for result in tests}}
    scores = {**best.scores, **(tested if tests else {}), **({"verdict": verdict.as_dict()} if verdict else {})}
    rescore(run.best, scores, model_card(best.config, best.scores["facts"], scores))


def _report(
    config: TrainConfig, run: RunFolder, texts: RunTexts, translator: Translator[TorchEngine], tests: list[TestResult]
) -> None:
    """Write the page, with examples of the first test set, or else of the validation set."""
    (direction, known), *_ = texts.validation.items()
    if texts.tests:
        name, known = next(iter(texts.tests.items()))
        direction = texts.direction_of(name)
    translated = {test.name: (texts.tests[test.name], test.translations) for test in tests}
    title, translator = config.run.name or run.path.name, translator.for_direction(direction)
    write_report(run, title, translator, known, translated, config.report.plots)
