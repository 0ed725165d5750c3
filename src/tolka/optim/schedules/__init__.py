"""Learning-rate schedules by name."""
