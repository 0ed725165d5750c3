"""The three commands: arguments in, one api call, exit code out. Nothing heavy is imported before it is needed."""
