"""A small assembler of WebAssembly's text: folded instructions, an imported memory, exported functions.

Of the core specification (https://webassembly.github.io/spec/core/, chapters 5 and 6) and its SIMD instructions, what
src/tolka/page/kernels.wat uses.
"""

import re
from typing import Any

TYPES = {"i32": 0x7F, "f32": 0x7D, "v128": 0x7B}
PLAIN = {
    "i32.lt_u": [0x49],
    "i32.add": [0x6A],
    "i32.sub": [0x6B],
    "i32.shl": [0x74],
    "f32.add": [0x92],
    "i32x4.add": [0xFD, 0xAE, 0x01],
    "i32x4.dot_i16x8_s": [0xFD, 0xBA, 0x01],
    "f32x4.add": [0xFD, 0xE4, 0x01],
    "f32x4.mul": [0xFD, 0xE6, 0x01],
}
OF_INDEX = {"local.get": [0x20], "local.set": [0x21], "br_if": [0x0D]}
OF_LANE = {"i32x4.extract_lane": [0xFD, 0x1B], "f32x4.extract_lane": [0xFD, 0x1F]}
# With the power of two that is their natural alignment.
OF_MEMORY = {
    "v128.load": ([0xFD, 0], 4),
    "v128.load8x8_s": ([0xFD, 1], 3),
    "i32.store": ([0x36], 2),
    "f32.store": ([0x38], 2),
}
LOOP, VOID, END, I32_CONST = 0x03, 0x40, 0x0B, 0x41


def parse(text: str) -> list[Any]:
    """Nested lists of words."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r'"[^"]*"|[()]|[^\s()"]+', re.sub(";;.*", "", text)):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token.strip('"'))
    return stack[0]


def unsigned(number: int) -> bytes:
    """LEB128."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + unsigned(rest) if rest else bytes([low])


def signed(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low]) if (rest, low & 0x40) in ((0, 0), (-1, 0x40)) else bytes([low | 0x80]) + signed(rest)


def vector(parts: list[bytes]) -> bytes:
    return unsigned(len(parts)) + b"".join(parts)


def sized(content: bytes) -> bytes:
    return unsigned(len(content)) + content


def instruction(node: list[Any], names: dict[str, int], labels: tuple[str, ...]) -> bytes:
    """The operands, and then the instruction itself. labels: of the loops around it, the innermost first."""
    name, *rest = node
    if name == "loop":
        label, *body = rest
        inner = b"".join(instruction(each, names, (label, *labels)) for each in body)
        return bytes([LOOP, VOID]) + inner + bytes([END])
    operands = b"".join(instruction(each, names, labels) for each in rest if isinstance(each, list))
    words = [each for each in rest if isinstance(each, str)]
    if name in PLAIN:
        return operands + bytes(PLAIN[name])
    if name in OF_INDEX:
        return (
            operands + bytes(OF_INDEX[name]) + unsigned(labels.index(words[0]) if name == "br_if" else names[words[0]])
        )
    if name in OF_LANE:
        return operands + bytes([*OF_LANE[name], int(words[0])])
    if name in OF_MEMORY:
        code, alignment = OF_MEMORY[name]
        offset = int(words[0].removeprefix("offset=")) if words else 0
        return operands + bytes(code) + unsigned(alignment) + unsigned(offset)
    if name == "i32.const":
        return bytes([I32_CONST]) + signed(int(words[0]))
    assert (name, words[0]) == ("v128.const", "i32x4"), name
    return bytes([0xFD, 0x0C]) + b"".join(int(word).to_bytes(4, "little") for word in words[1:])


def function(node: list[Any]) -> tuple[str, bytes, bytes]:
    """The name, the type and the body of an exported function."""
    names, inner = dict[str, int](), b""
    kinds: dict[str, list[int]] = {"param": [], "result": [], "local": []}
    for part in node[2:]:
        if part[0] in kinds:
            if part[0] != "result":
                names[part[1]] = len(names)
            kinds[part[0]].append(TYPES[part[-1]])
        else:
            inner += instruction(part, names, ())
    of_type = bytes([0x60]) + sized(bytes(kinds["param"])) + sized(bytes(kinds["result"]))
    # Neighbours of one type are declared together.
    declared = [match[0] for match in re.finditer(rb"(.)\1*", bytes(kinds["local"]), re.DOTALL)]
    local = vector([unsigned(len(each)) + each[:1] for each in declared])
    return node[1][1], of_type, sized(local + inner + bytes([END]))


def assemble(text: str) -> bytes:
    """The binary module."""
    ((module, imported, *nodes),) = parse(text)
    assert (module, imported[0], imported[3][0]) == ("module", "import", "memory")
    functions = [function(node) for node in nodes]
    types = list(dict.fromkeys(of_type for _, of_type, _ in functions))
    memory = bytes([2, 0]) + unsigned(int(imported[3][1]))
    sections = {
        1: vector(types),
        2: vector([sized(imported[1].encode()) + sized(imported[2].encode()) + memory]),
        3: vector([unsigned(types.index(of_type)) for _, of_type, _ in functions]),
        7: vector([sized(name.encode()) + bytes([0]) + unsigned(n) for n, (name, _, _) in enumerate(functions)]),
        10: vector([body for _, _, body in functions]),
    }
    return b"\0asm\1\0\0\0" + b"".join(bytes([number]) + sized(content) for number, content in sections.items())
