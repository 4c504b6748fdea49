"""Readable names of the models and tables of wide rows."""

from certified_unlearning.reproduction.summaries import Row

SYSTEMS = {
    "certified": "CertifiedLogisticRegression",
    "one-vs-rest": "CertifiedLogisticRegression, one-vs-rest",
    "lbfgs-cold": "scikit-learn from zero",
    "lbfgs-warm": "scikit-learn warm",
    "lbfgs-warm-moving": "scikit-learn warm, finer",
}
"""The systems by their names in the rows, in the order of display."""
KINDS = {"embeddings": "like embeddings", "words": "like TF-IDF, sparse"}


def title_of(row: Row) -> str:
    """Return the title of a table of wide rows: ``20,000 x 768 like embeddings, 2 classes, C n = 100``."""
    rows = f"{row['n']:,} x {row['d']:,} {KINDS.get(str(row['rows']), str(row['rows']))}"
    strength = "C = 1" if row["strength"] == row["n"] else f"C n = {row['strength']:g}"
    return f"{rows}, {row['classes']} classes, {strength}"
