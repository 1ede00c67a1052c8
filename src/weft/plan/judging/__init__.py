"""How good is a placement? Potentials, projected promises, availability and further terms of a score."""
