"""The mathematics, as pure functions of arrays in readable NumPy: the definition of the kernels."""
