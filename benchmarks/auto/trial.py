"""Train one configuration for some minutes of CPU time, test it, and print the figures as one line of JSON.

    OMP_NUM_THREADS=1 python benchmarks/auto/trial.py CORPUS_FOLDER RUN_FOLDER MINUTES [key=value ...]

On one thread CPU time is what the clock would show on an idle machine, so that a busy one changes no result. All that
tolka times within the process, the schedule's end included, is therefore timed in CPU seconds here. In a setting
CORPORA stands for the folder that the corpora are in.
"""

import json
import sys
import time
from pathlib import Path


def settings(corpus: Path, run: Path, minutes: float) -> list[str]:
    """Return what all trials on a corpus have in common."""
    source, target = "en", "ko" if (corpus / "train.ko").exists() else "de"
    tests = "[test,old]" if (corpus / "old.en").exists() else "[test]"
    return [
        *("corpus=files", f"corpus.root={corpus}", "corpus.train=train", "corpus.valid=valid", f"corpus.test={tests}"),
        *(f"corpus.source={source}", f"corpus.target={target}", f"run.dir={run}", f"run.prepared={run / 'prepared'}"),
        *("trainer.threads=1", "report.page=false", "report.plots=false", "metrics.names=[bleu,chrf]"),
        *(f"trainer.max_minutes={minutes}", "trainer.samples=0"),
    ]


def main(corpus: Path, run: Path, minutes: float, chosen: list[str]) -> None:
    """Train and test; the common settings come first, so that a trial can replace them."""
    import tolka  # after the arguments are read: its imports are not timed

    common = [each for each in settings(corpus, run, minutes) if not any(same_key(each, other) for other in chosen)]
    time.perf_counter = time.process_time
    started = time.process_time()
    result = tolka.train([*common, *chosen])
    best = json.loads((result.model / "scores.json").read_text("utf-8"))
    scores = {
        test.name: {metric["name"]: metric["score"] for metric in test.as_dict()["metrics"]} for test in result.tests
    }
    test = result.tests[0].as_dict()
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    validations = [line for line in lines if "bleu" in line and "seconds" in line]
    figures = {
        "valid": best["validation"],
        "test": scores.pop("test"),
        **scores,
        "ppl": test["perplexity"],
        "updates": result.state.update,
        "best_update": result.state.best_update,
        "training_seconds": result.state.seconds,
        "cpu_seconds": time.process_time() - started,
        "verdict": best["verdict"],
        "curve": [(round(line["seconds"] / 60, 2), line["update"], round(line["bleu"], 2)) for line in validations],
    }
    print(json.dumps(figures))


def same_key(a: str, b: str) -> bool:
    """Return whether two settings set the same key."""
    return a.partition("=")[0] == b.partition("=")[0]


if __name__ == "__main__":
    chosen = [setting.replace("CORPORA", str(Path(sys.argv[1]).parent)) for setting in sys.argv[4:]]
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), chosen)
