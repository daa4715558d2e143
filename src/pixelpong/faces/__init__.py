"""The user interfaces: command line, Python, display, plots, films, the page, games, exports."""
