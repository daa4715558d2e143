"""The Python interface: train, resume, evaluate, an agent that acts.

`pixelpong` itself collects these names; `pixelpong.env.gym` makes the environment.
"""
