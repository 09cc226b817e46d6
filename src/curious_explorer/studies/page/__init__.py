"""``report.html``: one page with a study's results, which opens from disk and loads nothing from a network."""
