-- Usage: one line for each model call that was paid for. Lines are only ever added.
-- The one index is in the order of a Member's time: a step adds one entry to it, and
-- the usage of a Member in a period is read from it.
-- Locks: none that anybody waits for: the table is new.
-- Way back: restore the database from before; the ledger would be lost, Turns keep
-- their own figures.

-- +goose Up

CREATE TABLE usage (
    member_id       TEXT COLLATE "C" NOT NULL,
    used_at         BIGINT NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    delegation_id   TEXT COLLATE "C" NOT NULL,
    model           TEXT COLLATE "C" NOT NULL,
    purpose         TEXT COLLATE "C" NOT NULL,
    steps           BIGINT NOT NULL,
    input_tokens    BIGINT NOT NULL,
    output_tokens   BIGINT NOT NULL,
    cost_nanos      BIGINT NOT NULL,
    CONSTRAINT usage_pk PRIMARY KEY (member_id, used_at, id)
);
