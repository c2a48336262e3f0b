-- Work that is given away: delegations, what belongs to them, and what waits while they
-- are paused.
-- Locks: the one writer, for as long as the columns take.
-- Way back: restore the database from before; work that is under way would be lost with
-- the table.

-- +goose Up

CREATE TABLE delegations (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    execution_id    TEXT NOT NULL,
    above_id        TEXT NOT NULL,
    parent_chat_id  TEXT NOT NULL,
    parent_turn_id  TEXT NOT NULL,
    parent_call_id  TEXT NOT NULL,
    trigger_id      TEXT NOT NULL,
    giver_id        TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    status          TEXT NOT NULL,
    task            TEXT NOT NULL,
    reason          TEXT NOT NULL,
    result          TEXT NOT NULL,
    limits          TEXT NOT NULL,
    authority       TEXT NOT NULL,
    steps           INTEGER NOT NULL,
    cost_nanos      INTEGER NOT NULL,
    started_at      INTEGER,
    clock           TEXT NOT NULL,
    pause           TEXT NOT NULL,
    call_id         TEXT NOT NULL,
    gate            INTEGER NOT NULL,
    stopping_at     INTEGER,
    stop_why        TEXT NOT NULL,
    notice          TEXT NOT NULL,
    first_event     INTEGER NOT NULL,
    last_event      INTEGER NOT NULL,
    notice_due_at   INTEGER,
    closing_due_at  INTEGER,
    resume_due_at   INTEGER,
    due_at          INTEGER,
    parked_by       TEXT NOT NULL,
    ended_at        INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT delegations_version CHECK (version > 0),
    CONSTRAINT delegations_pk PRIMARY KEY (id)
);
CREATE UNIQUE INDEX delegations_execution ON delegations (execution_id);
CREATE INDEX delegations_parent ON delegations (parent_chat_id, id);
CREATE INDEX delegations_parent_open ON delegations (parent_chat_id)
    WHERE ended_at IS NULL;
CREATE INDEX delegations_above_open ON delegations (above_id)
    WHERE ended_at IS NULL AND above_id <> '';
CREATE INDEX delegations_due ON delegations (due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX delegations_notice_due ON delegations (notice_due_at)
    WHERE notice_due_at IS NOT NULL;
CREATE INDEX delegations_parent_notice ON delegations (parent_chat_id, id)
    WHERE notice_due_at IS NOT NULL;
CREATE INDEX delegations_closing_due ON delegations (closing_due_at)
    WHERE closing_due_at IS NOT NULL;
CREATE INDEX delegations_resume_due ON delegations (resume_due_at)
    WHERE resume_due_at IS NOT NULL;
CREATE INDEX delegations_parked ON delegations (parked_by)
    WHERE parked_by <> '';

ALTER TABLE chats ADD COLUMN delegation_id TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN held TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN parked_by TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN delegation_id TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN parked_by TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN asked_id TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN limit_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN limit_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN topic TEXT NOT NULL DEFAULT '';
ALTER TABLE inputs ADD COLUMN topic TEXT NOT NULL DEFAULT '';

CREATE INDEX bots_chat ON bots (chat_id)
    WHERE chat_id <> '';
CREATE INDEX turns_parked ON turns (parked_by)
    WHERE parked_by <> '';
CREATE INDEX calls_parked ON calls (parked_by)
    WHERE parked_by <> '';
CREATE INDEX calls_work_open ON calls (chat_id)
    WHERE step = -1 AND ended_at IS NULL;
CREATE INDEX calls_out ON calls (chat_id)
    WHERE status IN ('sending', 'unknown') AND ended_at IS NULL;
CREATE INDEX requests_pending_work ON requests (delegation_id)
    WHERE status = 'pending' AND delegation_id <> '';
CREATE INDEX requests_pending_chat ON requests (chat_id)
    WHERE status = 'pending';
