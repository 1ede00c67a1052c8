"""How do records enter Spark, and when is each born?"""
