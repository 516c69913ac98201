"""r′, the counterfactual reasoning: written, validated, reviewed by people (RFEval, 3.2, B.3)."""
