"""Readable names of systems and synthetic data.

Code for plans and figures imports this module, so the module imports no large library.
"""

SYSTEMS = {
    "lbfgs-cold": "scikit-learn, L-BFGS from zero",
    "lbfgs-warm": "scikit-learn, L-BFGS warm",
    "lbfgs-warm-exact": "scikit-learn, L-BFGS warm, finer",
    "newton-cholesky-cold": "scikit-learn, Newton from zero",
    "newton-cholesky-warm": "scikit-learn, Newton warm",
    "sgd": "scikit-learn, SGD from zero",
    "sisa": "SISA, L-BFGS shards",
    "langevin-full": "Langevin, full batch",
    "langevin-minibatch": "Langevin, mini-batches",
    "descent-to-delete": "Descent-to-Delete, secret state",
    "certified-refit": "Certified refit",
    "newton-removal": "Newton removal",
}
SPECTRA = {
    "isotropic": "synthetic rows, all directions alike",
    "correlated": "synthetic rows, j-th variance 1/j^2",
}
