-- Evidence: receipts of decisions, the keys that sign them, and the audit log with its
-- chain.
-- Locks: the one writer, for as long as the tables take.
-- Way back: restore the database from before; receipts and the log would be lost with
-- the tables.
--
-- The log is append-only: the database itself refuses to change or delete a row of it.
-- Its times have whole milliseconds, because a row holds nothing that is not hashed.
-- Links have a table of their own, so that chaining an entry writes a row and changes
-- none.

-- +goose Up

ALTER TABLE requests ADD COLUMN receipt TEXT NOT NULL DEFAULT '';

CREATE TABLE signing_keys (
    id         TEXT NOT NULL,
    number     INTEGER NOT NULL,
    public     TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    active_at  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    CONSTRAINT signing_keys_version CHECK (version > 0),
    CONSTRAINT signing_keys_pk PRIMARY KEY (id),
    -- Of servers that make the first key at the same time one wins.
    CONSTRAINT signing_keys_number UNIQUE (number)
) STRICT;

CREATE TABLE audit_entries (
    organization_id TEXT NOT NULL,
    "position"      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind            TEXT NOT NULL,
    subject         TEXT NOT NULL,
    actor_tag       TEXT NOT NULL,
    actor_id        TEXT NOT NULL,
    token_id        TEXT NOT NULL,
    address         TEXT NOT NULL,
    data            TEXT NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_entries_organization ON audit_entries (organization_id, "position");
CREATE INDEX audit_entries_subject ON audit_entries (organization_id, subject, "position");
CREATE INDEX audit_entries_actor ON audit_entries (organization_id, actor_id, "position");
CREATE INDEX audit_entries_kind ON audit_entries (organization_id, kind, "position");

CREATE TABLE audit_links (
    organization_id TEXT NOT NULL,
    "position"      INTEGER NOT NULL,
    number          INTEGER NOT NULL,
    previous        TEXT NOT NULL,
    hash            TEXT NOT NULL,
    CONSTRAINT audit_links_pk PRIMARY KEY (organization_id, "position")
) STRICT;

CREATE TABLE audit_heads (
    id         TEXT NOT NULL,
    entries    INTEGER NOT NULL,
    hash       TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    signed     TEXT NOT NULL,
    linked_at  INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    CONSTRAINT audit_heads_version CHECK (version > 0),
    CONSTRAINT audit_heads_pk PRIMARY KEY (id)
) STRICT;
-- From now on every organization has a head.
INSERT INTO audit_heads (id, entries, hash, "position", signed, linked_at, version)
    SELECT id, 0, '', 0, '', 0, 1 FROM organizations;

-- +goose StatementBegin
CREATE TRIGGER audit_entries_unchanged BEFORE UPDATE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_kept BEFORE DELETE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_links_unchanged BEFORE UPDATE ON audit_links
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_links_kept BEFORE DELETE ON audit_links
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd
