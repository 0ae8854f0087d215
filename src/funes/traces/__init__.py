"""Where sessions come from: one module per harness."""
