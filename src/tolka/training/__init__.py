"""Optimisers, schedules, the loop, and the files of a run."""
