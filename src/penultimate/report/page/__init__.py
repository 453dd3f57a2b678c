"""The report: one page of all exhibits."""
