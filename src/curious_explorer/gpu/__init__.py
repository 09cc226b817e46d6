"""Walks and policy-gradient statistics on a GPU, through Triton; the extra ``gpu``.

`device` finds the GPU, `model` puts tables on it, `batches` runs kernels for many runs at once, and `backend` is what
``TabularWorld(mdp, backend="triton")`` uses: the case of a single run.
"""
