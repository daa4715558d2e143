"""The run directory: lines, checkpoints and files, without policies or the compiler."""
