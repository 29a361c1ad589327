"""What came out of runs: tables, summaries, pages. Reads results; needs no cluster."""
