-- Tags, taint and the automatic reviewer: where content from outside came from, what a
-- person was shown of it, and which Requests the reviewer has not read.
-- Locks: each table for a moment while its columns are added; the index is built on a
-- table in which no row has its column set.
-- Way back: restore the database from before; without the columns a tainted Chat would
-- pass for a clean one.

-- +goose Up

ALTER TABLE chats ADD COLUMN taint TEXT NOT NULL DEFAULT '';
ALTER TABLE inputs ADD COLUMN taint TEXT NOT NULL DEFAULT '';
ALTER TABLE bots ADD COLUMN taint TEXT NOT NULL DEFAULT '';
ALTER TABLE bots ADD COLUMN memory_taint TEXT NOT NULL DEFAULT '';
ALTER TABLE delegations ADD COLUMN taint TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN shown_in TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN tag_line TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN taint TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN tainted_tag TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN resource TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN verdict_due_at BIGINT;
ALTER TABLE requests ADD COLUMN verdict_tries BIGINT NOT NULL DEFAULT 0;

CREATE INDEX requests_verdict_due ON requests (verdict_due_at)
    WHERE verdict_due_at IS NOT NULL;
