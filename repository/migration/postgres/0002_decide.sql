-- What decides: Rules that the judge reads, reviews by Bots, plans, and on whose
-- strength a Grant was given.
-- Locks: each table for a moment while its columns are added; the indexes are built
-- on tables that are small by then.
-- Way back: restore the database from before; the rows of reviews that are under way
-- would be lost with the columns.

-- +goose Up

ALTER TABLE bots ADD COLUMN closing_due_at BIGINT;
ALTER TABLE chats ADD COLUMN plan TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN request_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN archived_at BIGINT;
ALTER TABLE calls ADD COLUMN evidence TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN judgings BIGINT NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN plan TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN on_expire TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN review_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN review_due_at BIGINT;
ALTER TABLE grants ADD COLUMN parent_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE rules ADD COLUMN keeper_id TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX bots_closing_due ON bots (closing_due_at)
    WHERE closing_due_at IS NOT NULL;
CREATE INDEX turns_open_bot ON turns (bot_id, id)
    WHERE status IN ('Queued', 'Running', 'Waiting');
CREATE INDEX requests_review_due ON requests (review_due_at)
    WHERE review_due_at IS NOT NULL;
CREATE INDEX requests_pending_plan ON requests (expires_at)
    WHERE status = 'pending' AND on_expire = 'allow';
CREATE INDEX requests_member ON requests (member_id, id);
CREATE INDEX grants_member ON grants (member_id, id);
CREATE INDEX grants_parent ON grants (parent_id)
    WHERE parent_id <> '';
CREATE INDEX rules_bot ON rules (bot_id, member_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX rules_member ON rules (member_id, id)
    WHERE deleted_at IS NULL AND bot_id <> '';
CREATE INDEX rules_organization ON rules (organization_id, id)
    WHERE deleted_at IS NULL AND bot_id = '';

CREATE TABLE previews (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    "text"          TEXT NOT NULL,
    effect          TEXT NOT NULL,
    number          BIGINT NOT NULL,
    results         TEXT NOT NULL,
    tries           BIGINT NOT NULL,
    due_at          BIGINT,
    created_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT previews_version CHECK (version > 0),
    CONSTRAINT previews_pk PRIMARY KEY (id)
);
CREATE INDEX previews_due ON previews (due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX previews_created ON previews (created_at);

-- When some server ran last: time without one does not count towards a plan that runs
-- when nobody answers.
CREATE TABLE heartbeat (
    only_row BOOLEAN NOT NULL DEFAULT TRUE,
    beat_at  BIGINT NOT NULL,
    CONSTRAINT heartbeat_pk PRIMARY KEY (only_row),
    CONSTRAINT heartbeat_only_row CHECK (only_row)
);
INSERT INTO heartbeat (beat_at) VALUES (0);
