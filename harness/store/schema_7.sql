-- The store, schema 7: what the numbers of an attempt come from besides processor and device.

DROP VIEW attempts_view;

ALTER TABLE attempts ADD COLUMN arithmetic TEXT NOT NULL DEFAULT '';  -- attempts/<n>/arithmetic

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, attempts.device,
         processor, version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic
  FROM attempts JOIN runs ON runs.number = attempts.run;
