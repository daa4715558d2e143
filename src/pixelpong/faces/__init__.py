"""What people use: command line, Python, live display, plots, films, the page, games, exports."""
