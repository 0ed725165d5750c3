"""BLEU, chrF and TER by sacreBLEU, each with its signature and interval. Nothing here needs torch."""
