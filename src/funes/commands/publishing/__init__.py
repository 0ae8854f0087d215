"""Parts of publishing: the secrets gate, what is remembered about each destination, the quiet push of the hooks."""
