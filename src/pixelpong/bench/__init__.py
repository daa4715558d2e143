"""Measurements that anyone can repeat, each with bare ALE's rate for comparison."""
