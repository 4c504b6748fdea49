"""C++ kernels, built by the machine's compiler (`certified_unlearning.compiled`)."""
