-- The tables of a workspace's database, of kDatabaseFormat (workspace_format.h). The views (views.sql) are
-- the interface that people query. Times are UTC, as in 2026-01-31T12:00:00Z.

CREATE TABLE runs (
  number        INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  state         TEXT NOT NULL,               -- a RunState by its name (runs/states.h)
  class         TEXT NOT NULL DEFAULT '',    -- a FailureClass by its name (runs/states.h)
  reason        TEXT NOT NULL DEFAULT '',
  canonical     TEXT NOT NULL,               -- run.toml; '' while the id is provisional
  local         TEXT NOT NULL,               -- local.toml
  data          TEXT NOT NULL,               -- JSON: input file → SHA-256 with which the run was planned
  device        TEXT NOT NULL,               -- 'cpu' or 'cuda'
  threads       INTEGER NOT NULL,            -- CPU threads
  resource_class TEXT NOT NULL,              -- '': not known
  parameters    INTEGER,
  memory_bytes  INTEGER,
  updates       INTEGER NOT NULL,            -- the maximum number that it can make
  step          INTEGER,                     -- the update at which it ended or diverged
  tries_from    INTEGER NOT NULL DEFAULT 0,  -- failures of attempts up to this one are forgiven
  metrics_bytes INTEGER NOT NULL DEFAULT 0,  -- how far metrics.jsonl has been read
  metrics_seal  INTEGER NOT NULL DEFAULT 0,  -- of its lines in `metrics` (checksums.h)
  changed_at    TEXT NOT NULL                -- of the state
) STRICT;
CREATE INDEX runs_by_state ON runs (state);

CREATE TABLE attempts (
  run          INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  attempt      INTEGER NOT NULL,
  outcome      TEXT NOT NULL,                -- '' while it runs, 'done', 'diverged', or a class of failure
  reason       TEXT NOT NULL,
  code         INTEGER,
  signal       INTEGER,
  started_at   TEXT NOT NULL,
  ended_at     TEXT NOT NULL,
  host         TEXT NOT NULL,
  device       TEXT NOT NULL,
  processor    TEXT NOT NULL,
  version      TEXT NOT NULL,
  numerics     INTEGER NOT NULL,
  arithmetic   TEXT NOT NULL,                -- attempts/<n>/arithmetic; '' where the program names none
  program_file TEXT NOT NULL,                -- checksum of the training program; '': unknown
  measured     TEXT NOT NULL,                -- measured.json, or 'null'
  checkpoint   INTEGER NOT NULL,             -- the newest one when the attempt had ended
  lost_updates INTEGER,                      -- made since the last checkpoint; NULL: not known, or it had a result
  lost_seconds REAL,                         -- that it had needed for them
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
  value    REAL,                             -- NULL: NaN, or null in metrics.jsonl
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (                       -- of runs that are done or diverged: files of the run folder
  run    INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
  done   TEXT NOT NULL,                      -- DONE
  scores TEXT                                -- scores.json; NULL: the run has none
) STRICT;

CREATE TABLE sweeps (
  id           TEXT PRIMARY KEY,
  title        TEXT NOT NULL,
  name         TEXT NOT NULL,                -- by which people call it: --name, else the title
  grid_file    TEXT NOT NULL,
  submitted_at TEXT NOT NULL,
  submission   INTEGER NOT NULL,             -- of any sweep, a later one has a higher number
  queued_as    INTEGER NOT NULL,             -- the submission that counts in the queue: the first since it was over
  state        TEXT NOT NULL,                -- 'active', 'paused' or 'cancelled'
  reason       TEXT NOT NULL,                -- of the state, one sentence
  priority     INTEGER NOT NULL,             -- sweeps of higher priority go first
  program      TEXT NOT NULL,                -- path of the training program
  stamp        TEXT NOT NULL,                -- JSON: its name, version and numerics
  policy       TEXT NOT NULL                 -- JSON: limits of time, retries
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_runs (
  sweep       TEXT NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
  place       INTEGER NOT NULL,              -- in the grid's order
  run         INTEGER NOT NULL REFERENCES runs (number),
  coordinates TEXT NOT NULL,                 -- {"axis": "label", …} in the order of the axes
  seed        INTEGER NOT NULL,
  rank        INTEGER NOT NULL,              -- runs of lower rank go first
  PRIMARY KEY (sweep, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_runs_by_run ON sweep_runs (run);

CREATE TABLE resource_classes (              -- learnt from runs that have ended, and learnt again
  resource_class TEXT PRIMARY KEY,
  learnt         TEXT NOT NULL               -- {"peak_bytes": of the memory that one run used at most}
) STRICT, WITHOUT ROWID;

CREATE TABLE checksums (                     -- over the rows of other tables (checksums.h)
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO checksums (name, value)
VALUES ('runs', 0), ('attempts', 0), ('results', 0), ('sweeps', 0), ('sweep_runs', 0);
