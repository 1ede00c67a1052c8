"""How are placements searched? Compiled problem, incremental costs, annealing, and repair of what rules forbid."""
