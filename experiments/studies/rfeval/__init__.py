"""RFEval: whether a model follows counterfactual reasoning put into its own mouth, coherently."""
