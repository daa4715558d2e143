"""The mathematics as pure functions in readable NumPy, which define what the kernels compute."""
