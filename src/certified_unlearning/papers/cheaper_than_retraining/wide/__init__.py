"""Experiment ``wide``: requests on rows as of embeddings and of texts, beside scikit-learn's refits."""
