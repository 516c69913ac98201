"""`faithscope annotate`: two people label chains of thought by hand (FaithCoT-Bench, App. A.3).

It stands in `analysis`, not in the study of that paper, since it shows the traces of any run to
people, and knows no study.
"""
