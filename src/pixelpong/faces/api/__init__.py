"""What a user calls from Python: train and resume, evaluate, an agent that acts.

The names are collected in `pixelpong` itself; the environment is made in `pixelpong.env.gym`.
"""
