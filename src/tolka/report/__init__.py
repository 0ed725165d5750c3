"""Reports for people about finished runs and scores: tables, plots and pages. Nothing here needs torch."""
