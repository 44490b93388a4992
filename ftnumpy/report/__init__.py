"""One page for a team about what was built and what was found out about it, made of kept results alone."""
