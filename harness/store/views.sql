-- The views are the interface that people query, and keep their names and columns (docs/sql.md). They hold nothing: a
-- writer replaces those of another build, and tearless reads by its own, whatever views are in the file.

-- The runs that derive from another, by a line of their canonical settings: derived.of = "<id>".
CREATE INDEX IF NOT EXISTS runs_by_of
  ON runs (substr(canonical, instr(char(10) || canonical, char(10) || 'derived.of = "') + 14, 16))
  WHERE instr(char(10) || canonical, char(10) || 'derived.of = "') > 0;

CREATE VIEW derived_runs_view AS
  SELECT id AS run, substr(canonical, instr(char(10) || canonical, char(10) || 'derived.of = "') + 14, 16) AS of
  FROM runs
  WHERE instr(char(10) || canonical, char(10) || 'derived.of = "') > 0;

CREATE VIEW runs_view AS
  SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at,
         (SELECT count(*) FROM attempts WHERE run = runs.number) AS attempts, canonical, device, threads,
         resource_class,
         (SELECT of FROM derived_runs_view AS derived WHERE derived.run = runs.id) AS of
  FROM runs;

CREATE VIEW attempts_view AS
  SELECT runs.id AS run, attempt, outcome, attempts.reason, code, signal, started_at, ended_at, host, attempts.device,
         processor, version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic, program_file
  FROM attempts JOIN runs ON runs.number = attempts.run;

CREATE VIEW metrics_view AS
  SELECT runs.id AS run, metrics.step, metric_names.name AS name, value
  FROM metrics JOIN runs ON runs.number = metrics.run JOIN metric_names ON metric_names.number = metrics.name;

-- The scores of a derived run are shown with the trained run from which it derives, directly or through another derived
-- run. Two sweeps may give derivations that differ the same name: `derived` says whose score it is.
CREATE VIEW scores_view AS
  SELECT coalesce(trained.of, origin.of, runs.id) AS run, score.key AS name, CAST(score.value AS REAL) AS value,
         iif(origin.of IS NULL, '', runs.id) AS derived
  FROM results JOIN runs ON runs.number = results.run LEFT JOIN derived_runs_view AS origin ON origin.run = runs.id
       LEFT JOIN derived_runs_view AS trained ON trained.run = origin.of JOIN json_each(results.scores) AS score
  WHERE score.type IN ('integer', 'real');

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
