-- Webhooks: who is told what, and every message with what became of it.
-- Locks: none that matter; both tables are new.
-- Way back: drop both tables; messages that wait would be lost.

-- +goose Up

CREATE TABLE webhooks (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    whole           INTEGER NOT NULL,
    url             TEXT NOT NULL,
    events          TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    disabled_why    TEXT NOT NULL,
    sealed          BLOB,
    deleted_at      INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT webhooks_version CHECK (version > 0),
    CONSTRAINT webhooks_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX webhooks_member ON webhooks (member_id, id)
    WHERE deleted_at IS NULL AND NOT whole;
CREATE INDEX webhooks_whole ON webhooks (organization_id, id)
    WHERE deleted_at IS NULL AND whole;

CREATE TABLE deliveries (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    webhook_id      TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    event           TEXT NOT NULL,
    payload         TEXT NOT NULL,
    status          TEXT NOT NULL,
    tries           INTEGER NOT NULL,
    outcome         TEXT NOT NULL,
    due_at          INTEGER,
    ended_at        INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT deliveries_version CHECK (version > 0),
    CONSTRAINT deliveries_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id)
    WHERE webhook_id <> '';
CREATE INDEX deliveries_webhook_status ON deliveries (webhook_id, status, id)
    WHERE webhook_id <> '';
CREATE INDEX deliveries_due ON deliveries (due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (status, ended_at)
    WHERE ended_at IS NOT NULL;
