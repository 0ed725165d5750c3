"""Write src/tolka/interchange/argos_splitter.onnx, the sentence splitter of exports to Argos.

Argos Translate splits sentences by MiniSBD, and downloads a model of that where a package has none. Such a model says
of each character whether a sentence ends there. Its inputs are the class of each character (`units`) and `features`:
whether it is a capital, whether the text begins there, and which words of the lexicon begin or end there. Nothing is
trained here: each filter of the convolution is one rule. A sentence ends at a mark and the quotes or brackets that
close it, if a blank follows, and after that no small letter; a full-width mark needs no blank. It does not end at the
stop of an initial, nor at that of an abbreviation in the lexicon. That is empty here: the export puts those of a
language in place of its blanks.

The file is written field by field, as https://github.com/onnx/onnx/blob/main/onnx/onnx.proto numbers them.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tolka.interchange.export_argos import LEXICON_SIZE

OUT = Path(__file__).parents[1] / "src" / "tolka" / "interchange" / "argos_splitter.onnx"
STOP, MARK, FULL_WIDTH, CLOSING, BLANK, OPENING, SMALL = range(2, 9)  # 0 is padding, and 1 any other character
CLASSES = 9
_GEORGIAN = range(0x10A0, 0x1100)  # whose letters Unicode calls small, and a sentence begins with one
_SMALL = [each for each in map(chr, range(0x10000)) if each.islower() and ord(each) not in _GEORGIAN]
CHARACTERS = {
    STOP: ".",
    MARK: "!?…‼⁇⁈⁉।॥۔؟።",
    FULL_WIDTH: "。！？｡។៕",
    CLOSING: "\"'”’»)]」』】》〉",
    BLANK: " ",
    OPENING: "“‘«„‚([{¿¡-–—",
    SMALL: "".join(_SMALL),
}
LONGEST = 8  # characters of an abbreviation before its stop
CAPITAL, FIRST, WORDS = CLASSES, CLASSES + 1, CLASSES + 2 + LONGEST  # WORDS + n: one of n + 2 characters ends here
CHANNELS = CLASSES + 2 + 2 * LONGEST
BEFORE, AFTER = LONGEST + 1, 2  # characters that a filter sees beside its own
CONFIG = {"feat_funcs": ["capitalized", "start_of_para"], "use_dictionary": True, "num_dict_feat": LONGEST}
Places = Sequence[tuple[int, Sequence[int]]]
"""Places beside a character, and the channels of which the character there has one."""


def rules() -> tuple[list[tuple[Places, Places]], list[tuple[Places, Places]]]:
    """Return what must and what must not be at the end of a sentence, and at a stop that ends none."""
    marked: list[Places] = [
        [(0, [STOP, MARK])],
        [(-1, [STOP, MARK]), (0, [CLOSING])],
        [(-2, [STOP, MARK]), (-1, [CLOSING]), (0, [CLOSING])],
    ]
    full_width: list[Places] = [[(0, [FULL_WIDTH])], [(-1, [FULL_WIDTH]), (0, [CLOSING])]]
    ends: list[tuple[Places, Places]] = [([*each, (1, [BLANK])], [(2, [SMALL])]) for each in marked]
    ends += [(each, [(1, [FULL_WIDTH, CLOSING, MARK])]) for each in full_width]
    words: list[tuple[int, Places]] = [(n + 1, [(0, [WORDS + n])]) for n in range(LONGEST)]
    words.append((1, [(-1, [CAPITAL]), (0, [STOP])]))
    no_ends: list[tuple[Places, Places]] = []
    for length, word in words:  # of so many characters before the stop
        no_ends.append(([*word, (-length - 1, [BLANK, OPENING, CLOSING])], []))
        no_ends.append(([*word, (-length, [FIRST])], []))
    return ends, no_ends


def model() -> bytes:
    """Return the ONNX model: logits (B, N, 3) of units (B, N) and features (B, N, F); class 2 ends a sentence."""
    ends, no_ends = rules()
    filters = np.zeros((len(ends) + len(no_ends), CHANNELS, BEFORE + 1 + AFTER), dtype=np.float32)
    bias = np.zeros(len(filters), dtype=np.float32)
    for number, (needed, forbidden) in enumerate([*ends, *no_ends]):
        # 1 where the rule holds, and 0 or less elsewhere.
        for places, weight in ((needed, 1.0), (forbidden, -9.0)):
            for place, channels in places:
                filters[number, channels, BEFORE + place] = weight
        bias[number] = 1 - len(needed)
    logits = np.zeros((3, len(filters), 1), dtype=np.float32)
    logits[2, : len(ends)], logits[2, len(ends) :] = 1.0, -9.0
    arrays = {
        "classes": np.eye(CLASSES, dtype=np.float32),
        "filters": filters,
        "bias": bias,
        "logits_of_rules": logits,
        "threshold": np.array([0.5, 0.0, 0.0], dtype=np.float32),
    }
    order = attribute("perm", [0, 2, 1])
    nodes = [
        node("Gather", ["classes", "units"], "class"),
        node("Concat", ["class", "features"], "channels", number_attribute("axis", 2)),
        node("Transpose", ["channels"], "rows", order),
        node("Conv", ["rows", "filters", "bias"], "sums", attribute("pads", [BEFORE, AFTER])),
        node("Relu", ["sums"], "hold"),
        node("Conv", ["hold", "logits_of_rules", "threshold"], "columns"),
        node("Transpose", ["columns"], "logits", order),
    ]
    inputs = [value("units", 7, 0), value("features", 1, CHANNELS - CLASSES)]  # of int64 and float32
    graph = [field(1, each) for each in nodes] + [field(2, b"rules"), *(tensor(*each) for each in arrays.items())]
    graph += [field(11, each) for each in inputs] + [field(12, value("logits", 1, 3))]
    units = {"<PAD>": 0, "<UNK>": 1} | {each: kind for kind, each_of in CHARACTERS.items() for each in each_of}
    vocabulary = {"lang": "", "_unit2id": units, "_id2unit": [str(number) for number in range(CLASSES)]}
    facts = {"lang_code": "mul", "config": json.dumps(CONFIG), "vocab": json.dumps(vocabulary, ensure_ascii=False)}
    facts["lexicon"] = f"[{' ' * LEXICON_SIZE}]"
    metadata = [field(14, field(1, key.encode()) + field(2, text.encode())) for key, text in facts.items()]
    return b"".join([integer(1, 6), field(8, integer(2, 11)), field(7, b"".join(graph)), *metadata])


def varint(number: int) -> bytes:
    """Return a number in base 128, lowest digit first."""
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + varint(number // 128)


def field(number: int, content: bytes) -> bytes:
    """Return a field of bytes, text or a message."""
    return varint(8 * number + 2) + varint(len(content)) + content


def integer(number: int, content: int) -> bytes:
    """Return a field with an integer."""
    return varint(8 * number) + varint(content)


def attribute(name: str, numbers: Sequence[int]) -> bytes:
    """Return an attribute of a node that is a list of integers."""
    return field(5, field(1, name.encode()) + b"".join(integer(8, each) for each in numbers) + integer(20, 7))


def number_attribute(name: str, number: int) -> bytes:
    """Return an attribute of a node that is an integer."""
    return field(5, field(1, name.encode()) + integer(3, number) + integer(20, 2))


def node(kind: str, inputs: Sequence[str], output: str, attributes: bytes = b"") -> bytes:
    """Return an operation."""
    named = b"".join(field(1, each.encode()) for each in inputs)
    return named + field(2, output.encode()) + field(4, kind.encode()) + attributes


def tensor(name: str, array: np.ndarray) -> bytes:
    """Return a constant in float32, as a field of the graph."""
    shape = b"".join(integer(1, size) for size in array.shape)
    return field(5, shape + integer(2, 1) + field(8, name.encode()) + field(9, array.astype("<f4").tobytes()))


def value(name: str, kind: int, width: int) -> bytes:
    """Return an input or output (B, N, width), or (B, N) for width 0. kind: of its numbers."""
    sizes = [field(2, b"B"), field(2, b"N"), *([integer(1, width)] if width else [])]
    shape = field(2, b"".join(field(1, each) for each in sizes))
    return field(1, name.encode()) + field(2, field(1, integer(1, kind) + shape))


if __name__ == "__main__":
    OUT.write_bytes(model())
    print(f"{OUT}: {OUT.stat().st_size:,} bytes")
