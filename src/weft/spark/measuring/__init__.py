"""What did batches take, by Spark's own report?"""
