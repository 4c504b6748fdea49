"""The experiment ``wide``: requests on rows that resemble embeddings and texts, compared with scikit-learn's refits."""
