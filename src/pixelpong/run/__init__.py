"""The run directory: lines, checkpoints, files. It knows no policy and loads no compiler."""
