"""The paper's claims, judged on a study: rules as data, verdicts, and the evidence on both sides."""
