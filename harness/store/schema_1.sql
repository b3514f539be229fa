-- The store, schema 1. Tables may change with a migration (database.cc); the views at the end are the interface that
-- people query, and keep their names and columns (docs/sql.md). Times are UTC, as in 2026-01-31T12:00:00Z.

CREATE TABLE runs (
  number        INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  state         TEXT NOT NULL
                CHECK (state IN ('queued', 'running', 'done', 'diverged', 'failed', 'held', 'waiting_data',
                                 'cancelled')),
  class         TEXT NOT NULL DEFAULT ''
                CHECK (class IN ('', 'settings', 'out_of_memory', 'crashed', 'stalled', 'lost', 'stopped', 'timeout')),
  reason        TEXT NOT NULL DEFAULT '',
  canonical     TEXT NOT NULL,               -- run.toml
  parameters    INTEGER,
  memory_bytes  INTEGER,
  updates       INTEGER NOT NULL,            -- the most that it can make
  step          INTEGER,                     -- the update at which it ended or diverged
  tries_from    INTEGER NOT NULL DEFAULT 0,  -- failures of attempts up to this one are forgiven
  metrics_bytes INTEGER NOT NULL DEFAULT 0,  -- how far metrics.jsonl has been read
  changed_at    TEXT NOT NULL                -- of the state
) STRICT;
CREATE INDEX runs_by_state ON runs (state);

CREATE TABLE attempts (
  run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  attempt    INTEGER NOT NULL,
  outcome    TEXT NOT NULL,                  -- '' while it runs, 'done', 'diverged', or a class of failure
  reason     TEXT NOT NULL,
  code       INTEGER,
  signal     INTEGER,
  started_at TEXT NOT NULL,
  ended_at   TEXT NOT NULL,
  host       TEXT NOT NULL,
  device     TEXT NOT NULL,
  processor  TEXT NOT NULL,
  version    TEXT NOT NULL,
  numerics   INTEGER NOT NULL,
  measured   TEXT NOT NULL,                  -- measured.json, or 'null'
  PRIMARY KEY (run, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE metric_names (
  number INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE metrics (
  run      INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  position INTEGER NOT NULL,                 -- byte offset in metrics.jsonl: what a resumed attempt cuts, we cut
  step     INTEGER NOT NULL,
  name     INTEGER NOT NULL REFERENCES metric_names (number),
  value    REAL NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE scores (
  run   INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  name  TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE sweeps (
  id           TEXT PRIMARY KEY,
  title        TEXT NOT NULL,
  grid_file    TEXT NOT NULL,
  submitted_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_runs (
  sweep       TEXT NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
  place       INTEGER NOT NULL,              -- in the grid's order
  run         INTEGER NOT NULL REFERENCES runs (number),
  coordinates TEXT NOT NULL,                 -- {"axis": "label", …} in the order of the axes
  seed        INTEGER NOT NULL,
  PRIMARY KEY (sweep, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_runs_by_run ON sweep_runs (run);

CREATE VIEW runs_view AS
  SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at,
         (SELECT count(*) FROM attempts WHERE run = runs.number) AS attempts, canonical
  FROM runs;

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, device, processor,
         version, numerics, measured
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
