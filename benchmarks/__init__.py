"""Benchmarks and long studies: each prints a table, and every figure in it comes from that run."""
