"""The mathematics as pure functions in readable NumPy: the definition of the kernels."""
