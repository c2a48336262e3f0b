-- Programs: the calls that a program makes, where it makes them, and where it stands
-- between its runs.
-- Locks: the one writer, for as long as the columns take.
-- Way back: restore the database from before; programs that wait would be lost with the
-- columns.

-- +goose Up

ALTER TABLE calls ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN program TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN code TEXT NOT NULL DEFAULT '';
