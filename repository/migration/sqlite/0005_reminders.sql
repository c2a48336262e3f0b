-- Reminders: the open ones alone; a row goes when its reminder fires or is cancelled.
-- Locks: the one writer, while the table is made.
-- Way back: restore the database from before; open reminders would be lost.

-- +goose Up

CREATE TABLE reminders (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    "text"          TEXT NOT NULL,
    authority       TEXT NOT NULL,
    due_at          INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT reminders_version CHECK (version > 0),
    CONSTRAINT reminders_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX reminders_chat ON reminders (chat_id);
CREATE INDEX reminders_due ON reminders (due_at);
