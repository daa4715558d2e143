"""Measurements that anyone can rerun, each with the bare emulator's rate beside it."""
