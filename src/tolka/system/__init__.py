"""The machine and the operating system: devices, seeds, threads, signals, atomic files and progress bars."""
