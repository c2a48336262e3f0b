-- Evidence: receipts of decisions, the keys that sign them, and the audit log with its
-- chain.
-- Locks: the requests table for an instant; the column has a constant default and
-- rewrites nothing.
-- Way back: restore the database from before; receipts and the log would be lost with
-- the tables.
--
-- The log is append-only: the database itself refuses to change or delete a row of it.
-- Its times have whole milliseconds, because a row holds nothing that is not hashed.
-- Links have a table of their own, so that chaining an entry writes a row and changes
-- none.
-- No foreign keys, as for every table that grows.

-- +goose Up

ALTER TABLE requests ADD COLUMN receipt TEXT NOT NULL DEFAULT '';

CREATE TABLE signing_keys (
    id         TEXT COLLATE "C" NOT NULL,
    number     BIGINT NOT NULL,
    public     TEXT NOT NULL,
    sealed     BYTEA NOT NULL,
    active_at  BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    CONSTRAINT signing_keys_version CHECK (version > 0),
    CONSTRAINT signing_keys_pk PRIMARY KEY (id),
    -- Of servers that make the first key at the same time one wins.
    CONSTRAINT signing_keys_number UNIQUE (number)
);

CREATE TABLE audit_entries (
    organization_id TEXT COLLATE "C" NOT NULL,
    "position"      BIGINT NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL,
    actor_tag       TEXT COLLATE "C" NOT NULL,
    actor_id        TEXT COLLATE "C" NOT NULL,
    token_id        TEXT COLLATE "C" NOT NULL,
    address         TEXT NOT NULL,
    data            TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    CONSTRAINT audit_entries_pk PRIMARY KEY (organization_id, "position")
);
CREATE INDEX audit_entries_subject ON audit_entries (organization_id, subject, "position");
CREATE INDEX audit_entries_actor ON audit_entries (organization_id, actor_id, "position");
CREATE INDEX audit_entries_kind ON audit_entries (organization_id, kind, "position");
CREATE INDEX audit_entries_created ON audit_entries USING brin (created_at);
-- Tells cheaply, at a start, whether there are positions above those to come.
CREATE INDEX audit_entries_position ON audit_entries USING brin ("position");

CREATE TABLE audit_links (
    organization_id TEXT COLLATE "C" NOT NULL,
    "position"      BIGINT NOT NULL,
    number          BIGINT NOT NULL,
    previous        TEXT NOT NULL,
    hash            TEXT NOT NULL,
    CONSTRAINT audit_links_pk PRIMARY KEY (organization_id, "position")
);

CREATE TABLE audit_heads (
    id         TEXT COLLATE "C" NOT NULL,
    entries    BIGINT NOT NULL,
    hash       TEXT NOT NULL,
    "position" BIGINT NOT NULL,
    signed     TEXT NOT NULL,
    linked_at  BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    CONSTRAINT audit_heads_version CHECK (version > 0),
    CONSTRAINT audit_heads_pk PRIMARY KEY (id)
);
-- From now on every organization has a head.
INSERT INTO audit_heads (id, entries, hash, "position", signed, linked_at, version)
    SELECT id, 0, '', 0, '', 0, 1 FROM organizations;

-- +goose StatementBegin
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_links_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_links
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
