"""The paper's claims, judged on a study: the rules as data, the verdicts, and the evidence on both sides."""
