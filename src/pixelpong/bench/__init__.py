"""Measurements that anyone can rerun, each with bare ALE's rate beside it."""
