"""Learning-rate schedules by name, one module each."""
