"""r′, the counterfactual reasoning: written and validated (RFEval, 3.2)."""
