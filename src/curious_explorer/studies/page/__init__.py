"""``report.html``: one page that tells the story of a study, opens from disk and asks nothing of a network."""
