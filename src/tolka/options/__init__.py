"""How a frozen dataclass becomes settings: registered names, parsing, and checks that say what is allowed."""
