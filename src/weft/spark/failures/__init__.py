"""Why did Spark fail, in words that a user can act on?"""
