"""What runs inside the census, in the interpreter that is counted: standard library only, Python 3.11 or later."""
