-- Triggers: what gives work to a Bot at times or on a signal.
-- Locks: none; the table is new.
-- Way back: restore the database from before.

-- +goose Up

CREATE TABLE triggers (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    cron            TEXT NOT NULL,
    time_zone       TEXT NOT NULL,
    missed          TEXT NOT NULL,
    sealed          BYTEA,
    bot_id          TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    task            TEXT NOT NULL,
    enabled         BOOLEAN NOT NULL,
    problem         TEXT NOT NULL,
    authority       TEXT NOT NULL,
    next_at         BIGINT,
    last_at         BIGINT,
    last_work_id    TEXT COLLATE "C" NOT NULL,
    deleted_at      BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT triggers_version CHECK (version > 0),
    CONSTRAINT triggers_pk PRIMARY KEY (id)
);
CREATE INDEX triggers_member ON triggers (member_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX triggers_next ON triggers (next_at)
    WHERE next_at IS NOT NULL;
