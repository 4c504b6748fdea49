"""Our own analysis, Cheaper than retraining: what a request costs, compared with a new fit. It reproduces no paper."""
