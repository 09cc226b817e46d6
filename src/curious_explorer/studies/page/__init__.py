"""``report.html``: one page with the results of a study or a run, which opens from disk and loads nothing else."""
