"""What an update, and a whole training, take on several GPUs: computation, communication, data and checkpoints.

    python benchmarks/cost_model.py

Prints the tables of docs/scaling.md, which say what is measured and what is assumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

FORWARD = 1 / 3  # of an update's computation; the backward pass takes twice as long, and hides communication
BYTES = 4  # of a gradient or a weight, in fp32


@dataclass(frozen=True)
class Machine:
    """GPUs joined by a network.

    tokens_per_second: of one GPU, source and target tokens together, with this model. local, network: bytes a second
    that a GPU sends to its neighbour within a node and that a node sends to another. start: seconds that each message
    of a ring takes before the first byte. price: of a GPU's hour, in dollars. disk: bytes a second of the file system.
    """

    tokens_per_second: float
    local: float = 200e9
    network: float = 25e9
    per_node: int = 8
    start: float = 10e-6
    price: float = 3.0
    disk: float = 2e9


@dataclass(frozen=True)
class Training:
    """A model and its batches. tokens: of one update, source and target together. way: ddp or fsdp."""

    parameters: float
    tokens: float
    way: str = "ddp"


def bytes_sent(training: Training, ranks: int) -> float:
    """Return the bytes that each rank sends in one update, in a ring: gradients once round and the sums once round."""
    once_round = (ranks - 1) / ranks * training.parameters * BYTES
    rounds = {"ddp": 2.0, "fsdp": 3.0}  # fsdp gathers the weights twice
    return rounds[training.way] * once_round


def communication(training: Training, machine: Machine, ranks: int) -> float:
    """Return the seconds that one update's messages take, if nothing else happens meanwhile."""
    if ranks == 1:
        return 0.0
    speed = machine.local if ranks <= machine.per_node else min(machine.local, machine.network)
    return bytes_sent(training, ranks) / speed + 2 * (ranks - 1) * machine.start


def update(training: Training, machine: Machine, ranks: int) -> float:
    """Return the seconds of one update: messages are sent while the backward pass computes."""
    computed = training.tokens / ranks / machine.tokens_per_second
    return taken(computed, communication(training, machine, ranks))


def taken(computed: float, sent: float) -> float:
    """Return the seconds of an update that computes and sends for so many seconds."""
    return computed * FORWARD + max(computed * (1 - FORWARD), sent)


ETHERNET, INFINIBAND = 25e9, 400e9  # bytes a second of a node: two ports of 100 Gbit/s; eight of 400 Gbit/s
BIG = Training(parameters=213e6, tokens=400_000)
FLOPS = 0.2 * 989e12  # assumed: a fifth of an H100's peak in bf16
TOKENS_PER_PAIR = 60  # assumed: source and target together
TEXTS = {"40 M pairs": (40e6, 10), "1 G pairs": (1e9, 2)}  # pairs, passes
READING, CLEANING, ENCODING = 3.7e-6, 13.4e-6, 19.8e-6  # seconds of a core for a pair; measured, see docs/data.md
LEARNING = 20.0  # seconds for the tokenizer; measured
SIZES = (1, 8, 64, 512)


def tokens_per_second(parameters: float) -> float:
    """Tokens a second of one GPU: a token passes one of the two halves of the model, six operations a weight."""
    return FLOPS / (6 * parameters / 2)


def ways() -> Iterator[tuple[str, Training]]:
    """Yield the ways that the table compares."""
    yield "ddp", BIG
    yield "fsdp", replace(BIG, way="fsdp")
    yield "ddp, 3.2 M tokens an update", replace(BIG, tokens=3_200_000)


def row(*cells: str) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    machine = Machine(tokens_per_second(BIG.parameters))
    gpus = [f"{ranks} GPU{'s' if ranks > 1 else ''}" for ranks in SIZES]
    for network in (ETHERNET, INFINIBAND):
        here = replace(machine, network=network)
        print(f"\n{row(f'{network / 1e9:g} GB/s a node', *gpus)}\n{row(*['---'] * 5)}")
        for name, training in ways():
            cells = []
            for ranks in SIZES:
                took, computed = update(training, here, ranks), training.tokens / ranks / here.tokens_per_second
                cells.append(f"{1e3 * took:,.0f} ms, {computed / took:.0%}")
            print(row(name, *cells))
    print(f"\n{row('', *gpus)}\n{row(*['---'] * 5)}")
    for text, (pairs, passes) in TEXTS.items():
        cells = []
        for ranks in SIZES:
            training = replace(BIG, tokens=max(BIG.tokens, 6250.0 * ranks))
            updates = pairs * passes * TOKENS_PER_PAIR / training.tokens
            hours = updates * update(training, machine, ranks) / 3600
            cells.append(f"{hours:,.1f} h, ${hours * ranks * machine.price:,.0f}")
        print(row(f"{text}, {passes} passes", *cells))
    saved = 16 * BIG.parameters
    print(
        f"\na state to resume from: {saved / 1e9:.1f} GB, {saved / machine.disk:.1f} s at {machine.disk / 1e9:g} GB/s"
    )
    for text, (pairs, _) in TEXTS.items():
        seconds = {cores: pairs * (READING + (CLEANING + ENCODING) / cores) + LEARNING for cores in (2, 16, 64, 512)}
        print(
            f"preparing {text}:", ", ".join(f"{each / 60:,.0f} min on {cores} cores" for cores, each in seconds.items())
        )


if __name__ == "__main__":
    main()
