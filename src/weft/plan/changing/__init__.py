"""What runs as one Spark query, and what does a change of the plan end, drain and start?"""
