-- The tables of a workspace's database, of kWorkspaceFormat (workspace_format.h). The views at the end are the interface
-- that people query, and keep their names and columns (docs/sql.md). Times are UTC, as in 2026-01-31T12:00:00Z.

CREATE TABLE runs (
  number        INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  state         TEXT NOT NULL,               -- a RunState by its name (runs/states.h)
  class         TEXT NOT NULL DEFAULT '',    -- likewise a FailureClass
  reason        TEXT NOT NULL DEFAULT '',
  canonical     TEXT NOT NULL,               -- run.toml; '' while the id is provisional
  local         TEXT NOT NULL,               -- local.toml
  data          TEXT NOT NULL,               -- JSON: input file → SHA-256 with which the run was planned
  device        TEXT NOT NULL,               -- 'cpu' or 'cuda'
  threads       INTEGER NOT NULL,            -- CPU threads
  shape         TEXT NOT NULL,               -- runs with the same text need the same memory; '': not known
  parameters    INTEGER,
  memory_bytes  INTEGER,
  updates       INTEGER NOT NULL,            -- the maximum number that it can make
  step          INTEGER,                     -- the update at which it ended or diverged
  tries_from    INTEGER NOT NULL DEFAULT 0,  -- failures of attempts up to this one are forgiven
  metrics_bytes INTEGER NOT NULL DEFAULT 0,  -- how far metrics.jsonl has been read
  metrics_seal  INTEGER NOT NULL DEFAULT 0,  -- of its lines in `metrics` (checksums.h)
  changed_at    TEXT NOT NULL,               -- of the state
  of            TEXT AS (                    -- the run from which it derives, by a line of `canonical`; '': none
    iif(instr(char(10) || canonical, char(10) || 'derived.of = "') = 0, '',
        substr(canonical, instr(char(10) || canonical, char(10) || 'derived.of = "') + 14, 16)))
) STRICT;
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX runs_by_of ON runs (of) WHERE of != '';

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
  value    REAL NOT NULL,
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

CREATE TABLE shapes (                        -- learnt from runs that have ended; deleted, it is learnt again
  shape   TEXT PRIMARY KEY,
  learnt  TEXT NOT NULL                      -- {"peak_bytes": of the memory that one run used at most}
) STRICT, WITHOUT ROWID;

CREATE TABLE checksums (                     -- over the rows of other tables (checksums.h)
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO checksums (name, value)
VALUES ('runs', 0), ('attempts', 0), ('results', 0), ('sweeps', 0), ('sweep_runs', 0);

CREATE VIEW runs_view AS
  SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at,
         (SELECT count(*) FROM attempts WHERE run = runs.number) AS attempts, canonical, device, threads, shape, of
  FROM runs;

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, attempts.device,
         processor, version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic
  FROM attempts JOIN runs ON runs.number = attempts.run;

CREATE VIEW metrics_view AS
  SELECT runs.id AS run, metrics.step, metric_names.name AS name, value
  FROM metrics JOIN runs ON runs.number = metrics.run JOIN metric_names ON metric_names.number = metrics.name;

-- The scores of a run that derives from another, or from one that does, are those of the trained run.
CREATE VIEW scores_view AS
  SELECT runs.id AS run, score.key AS name, CAST(score.value AS REAL) AS value
  FROM results JOIN runs ON runs.number = results.run, json_each(results.scores) AS score
  WHERE runs.of = '' AND score.type IN ('integer', 'real')
  UNION ALL
  SELECT trained.id, score.key, CAST(score.value AS REAL)
  FROM runs AS trained JOIN runs ON runs.of = trained.id AND runs.of != '' JOIN results ON runs.number = results.run,
       json_each(results.scores) AS score
  WHERE trained.of = '' AND score.type IN ('integer', 'real')
  UNION ALL
  SELECT origin.of, score.key, CAST(score.value AS REAL)
  FROM runs AS origin JOIN runs ON runs.of = origin.id AND runs.of != '' JOIN results ON runs.number = results.run,
       json_each(results.scores) AS score
  WHERE origin.of != '' AND score.type IN ('integer', 'real');

CREATE VIEW sweeps_view AS
  SELECT id, title, grid_file, submitted_at, (SELECT count(*) FROM sweep_runs WHERE sweep = sweeps.id) AS runs,
         state, reason, priority, name
  FROM sweeps;

CREATE VIEW sweep_runs_view AS
  SELECT sweep, place, runs.id AS run, state, coordinates, seed
  FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run;

-- canonical is one line `key = value` for each setting. It becomes a JSON list of its lines: in the JSON of a text, the
-- pair \\ is a backslash, so that each \n that is left is the end of a line.
CREATE VIEW settings_view AS
  SELECT runs.id AS run, substr(line.value, 1, instr(line.value, ' = ') - 1) AS key,
         substr(line.value, instr(line.value, ' = ') + 3) AS value
  FROM runs,
       json_each('[' || replace(replace(json_quote(canonical), '\\', '\u005c'), '\n', '","') || ']') AS line
  WHERE instr(line.value, ' = ') > 0;
