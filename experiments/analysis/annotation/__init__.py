"""`faithscope annotate`: two people label chains of thought by hand (FaithCoT-Bench, App. A.3).

It stands in `analysis`, not in the study of that paper: it takes the records of any run over traces
to a person who reads them, and knows no study.
"""
