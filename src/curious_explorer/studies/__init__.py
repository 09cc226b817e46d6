"""What is run into a folder, and what is shown of it: `explore`, `solve`, the paper's experiments, comparisons."""
