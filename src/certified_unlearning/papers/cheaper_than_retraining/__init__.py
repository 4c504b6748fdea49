"""Our own analysis, Cheaper than retraining: the cost of a request, compared with a new fit. It reproduces no paper."""
