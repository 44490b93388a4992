"""What a team takes away: the interpreter as an archive, the wheel, and pages by which pip and uv install them."""
