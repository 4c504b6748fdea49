"""The experiment ``wide``: requests on rows like embeddings and texts, compared with scikit-learn's refits."""
