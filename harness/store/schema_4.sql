-- The store, schema 4: what is known of the runs' needs for the next process that places them.

DROP VIEW runs_view;

ALTER TABLE runs ADD COLUMN shape TEXT NOT NULL DEFAULT '';  -- runs with the same text need the same memory; '': not known

-- Learnt from runs that have ended. It may be deleted: it is learnt again.
CREATE TABLE shapes (
  shape   TEXT PRIMARY KEY,
  learnt  TEXT NOT NULL  -- JSON: peak_bytes, observations of the throughput of runs that share a GPU
) STRICT, WITHOUT ROWID;

CREATE VIEW runs_view AS
  SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at,
         (SELECT count(*) FROM attempts WHERE run = runs.number) AS attempts, canonical, device, threads, shape
  FROM runs;
