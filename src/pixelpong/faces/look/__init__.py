"""One picture of what an agent sees and decides: as a film, and packed for the page's viewer."""
