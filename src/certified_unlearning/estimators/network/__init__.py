"""A network that certifies some of its predictions: removals would not change them."""
