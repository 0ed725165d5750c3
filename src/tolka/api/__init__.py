"""The work of the commands, as functions: settings in, a typed result out."""
