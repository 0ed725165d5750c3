"""What a person reads about a finished run or a set of scores: tables, plots and pages, made without torch."""
