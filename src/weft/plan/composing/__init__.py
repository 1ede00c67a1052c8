"""Can a query be had, where, and at what price to others? What composing sites work out, as pure functions."""
