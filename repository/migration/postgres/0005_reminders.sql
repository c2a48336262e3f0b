-- Reminders: the open ones alone; a row goes when its reminder fires or is cancelled.
-- Locks: none that anybody waits for: the table is new.
-- Way back: restore the database from before; open reminders would be lost.

-- +goose Up

CREATE TABLE reminders (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    "text"          TEXT NOT NULL,
    authority       TEXT NOT NULL,
    due_at          BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT reminders_version CHECK (version > 0),
    CONSTRAINT reminders_pk PRIMARY KEY (id)
);
CREATE INDEX reminders_chat ON reminders (chat_id);
CREATE INDEX reminders_due ON reminders (due_at);
