"""How do records move in virtual time? The compiled record plane."""
