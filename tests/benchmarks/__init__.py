"""What mem costs beside its peers: `python tests/benchmarks/run.py` measures every row of one table."""
