-- Usage: one line for each model call that was paid for. Lines are only ever added.
-- The one key is in the order of a Member's time, and holds the lines themselves: a
-- step writes to one place, and the usage of a Member in a period lies in one piece.
-- Locks: the one writer, while the table is made.
-- Way back: restore the database from before; the ledger would be lost, Turns keep
-- their own figures.

-- +goose Up

CREATE TABLE usage (
    member_id       TEXT NOT NULL,
    used_at         INTEGER NOT NULL,
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    delegation_id   TEXT NOT NULL,
    model           TEXT NOT NULL,
    purpose         TEXT NOT NULL,
    steps           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_nanos      INTEGER NOT NULL,
    CONSTRAINT usage_pk PRIMARY KEY (member_id, used_at, id)
) STRICT, WITHOUT ROWID;
