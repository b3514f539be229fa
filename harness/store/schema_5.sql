-- The store, schema 5: the outcome of `tearless verify-resume`, the newest of each run.

CREATE TABLE resume_checks (
  run    INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
  record TEXT NOT NULL  -- sealed JSON: resume.json of the run directory
) STRICT;

CREATE VIEW resume_checks_view AS
  SELECT runs.id AS run, json_extract(record, '$.outcome') AS outcome, json_array_length(record, '$.stops') AS stops,
         json_extract(record, '$.settings') AS settings, json_extract(record, '$.verified_at') AS verified_at, record
  FROM resume_checks JOIN runs ON runs.number = resume_checks.run;
