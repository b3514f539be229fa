-- The store, schema 6: the work that each attempt lost.

DROP VIEW attempts_view;

ALTER TABLE attempts ADD COLUMN lost_updates INTEGER;  -- made since the last checkpoint; NULL: not known, or it had a result
ALTER TABLE attempts ADD COLUMN lost_seconds REAL;     -- that it had needed for them

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, attempts.device,
         processor, version, numerics, measured, checkpoint, lost_updates, lost_seconds
  FROM attempts JOIN runs ON runs.number = attempts.run;
