"""Faces: what people look at. They read what the layers below have made and compute nothing new."""
