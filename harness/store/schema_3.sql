-- The store, schema 3: what a daemon needs to work on a sweep without its grid file. Sweeps of older databases are paused:
-- nobody asked for them to go on. The columns of the views stay; new ones are added at the end.

DROP VIEW runs_view;
DROP VIEW attempts_view;
DROP VIEW sweeps_view;

ALTER TABLE runs ADD COLUMN local TEXT NOT NULL DEFAULT '';      -- local.toml
ALTER TABLE runs ADD COLUMN device TEXT NOT NULL DEFAULT 'cpu';  -- 'cpu' or 'cuda'
ALTER TABLE runs ADD COLUMN threads INTEGER NOT NULL DEFAULT 1;  -- CPU threads

ALTER TABLE sweeps ADD COLUMN state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'cancelled'));
ALTER TABLE sweeps ADD COLUMN reason TEXT NOT NULL DEFAULT '';          -- of the state, one sentence
ALTER TABLE sweeps ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;      -- sweeps of higher priority go first
ALTER TABLE sweeps ADD COLUMN submission INTEGER NOT NULL DEFAULT 0;    -- a later submission has a higher number
ALTER TABLE sweeps ADD COLUMN program TEXT NOT NULL DEFAULT '';         -- path of the training program
ALTER TABLE sweeps ADD COLUMN stamp TEXT NOT NULL DEFAULT '{}';         -- JSON: its name, version and numerics
ALTER TABLE sweeps ADD COLUMN policy TEXT NOT NULL DEFAULT '{}';        -- JSON: limits of time, retries
UPDATE sweeps SET state = 'paused', reason = 'it was run by an older tearless';

ALTER TABLE sweep_runs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;      -- runs of lower rank go first

CREATE VIEW runs_view AS
  SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at,
         (SELECT count(*) FROM attempts WHERE run = runs.number) AS attempts, canonical, device, threads
  FROM runs;

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, attempts.device,
         processor, version, numerics, measured, checkpoint
  FROM attempts JOIN runs ON runs.number = attempts.run;

CREATE VIEW sweeps_view AS
  SELECT id, title, grid_file, submitted_at, (SELECT count(*) FROM sweep_runs WHERE sweep = sweeps.id) AS runs,
         state, reason, priority
  FROM sweeps;
