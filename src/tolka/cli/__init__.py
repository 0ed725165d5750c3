"""The three commands: arguments in, one api call, exit code out. Nothing heavy is imported before it is needed."""

from tolka.system import interrupts

# Here and not in `main`: a command takes a while to be imported, and may be asked to end meanwhile.
interrupts.take_hooks()
interrupts.listen()
