"""`faithscope annotate`: two people label chains of thought by hand (FaithCoT-Bench, App. A.3).

It shows the traces of any run to people, and knows no study.
"""
