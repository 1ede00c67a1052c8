"""How does a deployment become the loop's memory?"""
