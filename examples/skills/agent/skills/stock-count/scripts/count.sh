#!/bin/sh
# Prints how many of an article are on the shelf.
awk -F, -v article="$1" '$1 == article { n += $2 } END { print n + 0 }' "$(dirname "$0")/../data/shelf.csv"
