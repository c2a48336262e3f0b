-- Channels: group chats outside, their Chats, whose input a Turn takes, and what goes out
-- through them.
-- Locks: each table for a moment while its columns are added; the indexes are built on
-- columns that no row has set.
-- Way back: restore the database from before; the Chats of Channels would be lost with the
-- columns.

-- +goose Up

CREATE TABLE channels (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    name            TEXT NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    url             TEXT NOT NULL,
    sealed          BYTEA,
    actors          TEXT NOT NULL,
    enabled         BOOLEAN NOT NULL,
    disabled_why    TEXT NOT NULL,
    deleted_at      BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT channels_version CHECK (version > 0),
    CONSTRAINT channels_pk PRIMARY KEY (id)
);
CREATE INDEX channels_member ON channels (member_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX channels_organization ON channels (organization_id, id)
    WHERE deleted_at IS NULL;

ALTER TABLE chats ADD COLUMN channel_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN outside TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN channel_id TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE UNIQUE INDEX chats_channel ON chats (channel_id, outside)
    WHERE channel_id <> '' AND deleted_at IS NULL;
CREATE INDEX deliveries_channel ON deliveries (channel_id, id)
    WHERE channel_id <> '';
CREATE INDEX deliveries_channel_status ON deliveries (channel_id, status, id)
    WHERE channel_id <> '';
