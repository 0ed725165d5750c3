#!/bin/sh
# The experiment "LibreOffice", and its row of results. DIR holds train, valid and test, each as .en and .ko,
# plain or gzip: strings and help texts of LibreOffice 7.4 (MPL-2.0).
# Usage: scripts/reproduce_libreoffice.sh DIR
set -eu
mt-train experiment=libreoffice "corpus.root=${1:?the folder with the corpus}"
python "$(dirname "$0")/results_row.py" runs/libreoffice
