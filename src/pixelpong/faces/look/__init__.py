"""What an agent sees and decides, as a film and as data for the page's viewer."""
