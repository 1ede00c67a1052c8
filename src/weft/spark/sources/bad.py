"""How is a bad record told from others? By a column that holds its text where it could not be read."""

BAD = "_weft_bad"
