"""The configurations of the three commands, and how Hydra and the command line make them."""
