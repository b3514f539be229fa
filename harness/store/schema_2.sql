-- The store, schema 2: two more classes of failure, the newest checkpoint after each attempt (tries are counted since the
-- last progress), and a seal on each result. Run with foreign keys off: SQLite changes a CHECK by rebuilding the table.

DROP VIEW runs_view;
DROP VIEW attempts_view;
DROP VIEW metrics_view;
DROP VIEW scores_view;
DROP VIEW sweeps_view;
DROP VIEW sweep_runs_view;

CREATE TABLE runs_2 (
  number        INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  state         TEXT NOT NULL
                CHECK (state IN ('queued', 'running', 'done', 'diverged', 'failed', 'held', 'waiting_data',
                                 'cancelled')),
  class         TEXT NOT NULL DEFAULT ''
                CHECK (class IN ('', 'settings', 'out_of_memory', 'crashed', 'stalled', 'lost', 'stopped', 'timeout',
                                 'killed', 'machine')),
  reason        TEXT NOT NULL DEFAULT '',
  canonical     TEXT NOT NULL,               -- run.toml
  parameters    INTEGER,
  memory_bytes  INTEGER,
  updates       INTEGER NOT NULL,            -- the most that it can make
  step          INTEGER,                     -- the update at which it ended or diverged
  tries_from    INTEGER NOT NULL DEFAULT 0,  -- failures of attempts up to this one are forgiven
  metrics_bytes INTEGER NOT NULL DEFAULT 0,  -- how far metrics.jsonl has been read
  changed_at    TEXT NOT NULL,               -- of the state
  seal          TEXT NOT NULL DEFAULT ''     -- of a result: a hash of all that a table prints of it; '' of schema 1
) STRICT;
INSERT INTO runs_2 SELECT number, id, state, class, reason, canonical, parameters, memory_bytes, updates, step,
  tries_from, metrics_bytes, changed_at, '' FROM runs;
DROP TABLE runs;
ALTER TABLE runs_2 RENAME TO runs;
CREATE INDEX runs_by_state ON runs (state);

ALTER TABLE attempts ADD COLUMN checkpoint INTEGER NOT NULL DEFAULT 0;  -- the newest one when the attempt had ended

CREATE VIEW runs_view AS
  SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at,
         (SELECT count(*) FROM attempts WHERE run = runs.number) AS attempts, canonical
  FROM runs;

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, device, processor,
         version, numerics, measured, checkpoint
  FROM attempts JOIN runs ON runs.number = attempts.run;

CREATE VIEW metrics_view AS
  SELECT runs.id AS run, metrics.step, metric_names.name AS name, value
  FROM metrics JOIN runs ON runs.number = metrics.run JOIN metric_names ON metric_names.number = metrics.name;

CREATE VIEW scores_view AS
  SELECT runs.id AS run, name, value FROM scores JOIN runs ON runs.number = scores.run;

CREATE VIEW sweeps_view AS
  SELECT id, title, grid_file, submitted_at, (SELECT count(*) FROM sweep_runs WHERE sweep = sweeps.id) AS runs
  FROM sweeps;

CREATE VIEW sweep_runs_view AS
  SELECT sweep, place, runs.id AS run, state, coordinates, seed
  FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run;
