-- Triggers: what gives work to a Bot at times or on a signal.
-- Locks: the one writer, for a moment.
-- Way back: restore the database from before.

-- +goose Up

CREATE TABLE triggers (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    cron            TEXT NOT NULL,
    time_zone       TEXT NOT NULL,
    missed          TEXT NOT NULL,
    sealed          BLOB,
    bot_id          TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    task            TEXT NOT NULL,
    enabled         BOOLEAN NOT NULL,
    problem         TEXT NOT NULL,
    authority       TEXT NOT NULL,
    next_at         INTEGER,
    last_at         INTEGER,
    last_work_id    TEXT NOT NULL,
    deleted_at      INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT triggers_version CHECK (version > 0),
    CONSTRAINT triggers_pk PRIMARY KEY (id)
);
CREATE INDEX triggers_member ON triggers (member_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX triggers_next ON triggers (next_at)
    WHERE next_at IS NOT NULL;
