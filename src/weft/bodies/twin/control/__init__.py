"""How are the machines carried between the events of the record plane?"""
