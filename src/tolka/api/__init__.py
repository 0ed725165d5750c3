"""What the commands do, as functions: settings in, a typed result out."""
