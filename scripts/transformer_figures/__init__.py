"""The experiments of docs/transformer.md, one file each.

Every file has `measure() -> Numbers` (or `measure(sample)`), which computes plain numbers; `tables(numbers)`, which
words them as markdown; and `draw(numbers, folder)`, which makes the figure. Only `measure` takes time.
"""
