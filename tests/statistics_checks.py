"""Statistical tests with a named significance."""

import numpy as np
from scipy import stats

SIGNIFICANCE = 1e-3


def chi_square(counts, distribution):
    """p-value of counts against a distribution; cells expected under five times are pooled, impossible ones fail."""
    impossible = distribution <= 1e-15
    assert counts[impossible].sum() == 0
    expected = distribution * counts.sum()
    rare = (expected < 5) & ~impossible
    observed = np.append(counts[~rare & ~impossible], counts[rare].sum())
    wanted = np.append(expected[~rare & ~impossible], expected[rare].sum())
    if wanted[-1] < 5:  # too rare even together: join the largest cell
        largest = np.argmax(wanted[:-1])
        observed[largest] += observed[-1]
        wanted[largest] += wanted[-1]
        observed, wanted = observed[:-1], wanted[:-1]
    if len(wanted) < 2:
        return 1.0
    return stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue
