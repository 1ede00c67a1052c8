"""Which Spark runs the fragments, and how is it set?"""
