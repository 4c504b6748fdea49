"""Tables of one's own: their declaration, how files are read, how values become numbers, rows prepared from them."""
