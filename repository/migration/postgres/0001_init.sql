-- The first schema.
-- Locks: none that matter; it makes new tables in an empty database, in one
-- transaction.
-- Way back: drop the schema; there is nothing to keep before the first start.
--
-- Times are microseconds since the epoch. Texts that hold JSON are TEXT, never
-- jsonb: the exact bytes come back, and their digests hold. IDs compare by bytes.
-- Hot tables have no foreign keys: the check would lock the rows of the tenant for
-- every writer. What they point to is never deleted, so nothing can dangle. Tables
-- that are updated often leave room in their pages, so that an update stays in its
-- page. No index holds a text whose length a stranger chooses.

-- +goose Up

CREATE TABLE organizations (
    id         TEXT COLLATE "C" NOT NULL,
    name       TEXT NOT NULL,
    settings   TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    CONSTRAINT organizations_version CHECK (version > 0),
    CONSTRAINT organizations_pk PRIMARY KEY (id)
);

CREATE TABLE members (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    name            TEXT NOT NULL,
    permissions     TEXT NOT NULL,
    main_bot_id     TEXT COLLATE "C" NOT NULL,
    disabled_at     BIGINT,
    closing_due_at  BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT members_version CHECK (version > 0),
    CONSTRAINT members_pk PRIMARY KEY (id),
    CONSTRAINT members_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX members_organization ON members (organization_id, id);
CREATE INDEX members_closing_due ON members (closing_due_at)
    WHERE closing_due_at IS NOT NULL;

CREATE TABLE tokens (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    name            TEXT NOT NULL,
    hash            TEXT COLLATE "C" NOT NULL,
    scopes          TEXT NOT NULL,
    expires_at      BIGINT,
    last_used_at    BIGINT,
    revoked_at      BIGINT,
    closing_due_at  BIGINT,
    created_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT tokens_version CHECK (version > 0),
    CONSTRAINT tokens_pk PRIMARY KEY (id),
    CONSTRAINT tokens_hash UNIQUE (hash),
    CONSTRAINT tokens_member_fk FOREIGN KEY (member_id) REFERENCES members (id)
);
CREATE INDEX tokens_organization ON tokens (organization_id, id);
CREATE INDEX tokens_closing_due ON tokens (closing_due_at)
    WHERE closing_due_at IS NOT NULL;

CREATE TABLE bots (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    owner_id        TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    shared          BOOLEAN NOT NULL,
    name            TEXT NOT NULL,
    role            TEXT NOT NULL,
    instructions    TEXT NOT NULL,
    model           TEXT NOT NULL,
    memory          TEXT NOT NULL,
    archived_at     BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT bots_version CHECK (version > 0),
    CONSTRAINT bots_pk PRIMARY KEY (id)
);
CREATE UNIQUE INDEX bots_main ON bots (member_id)
    WHERE kind = 'main';
CREATE INDEX bots_member ON bots (member_id, id);
CREATE INDEX bots_shared ON bots (organization_id, id)
    WHERE shared;

CREATE TABLE connections (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    shared          BOOLEAN NOT NULL,
    name            TEXT NOT NULL,
    transport       TEXT NOT NULL,
    url             TEXT NOT NULL,
    command         TEXT NOT NULL,
    args            TEXT NOT NULL,
    header_names    TEXT NOT NULL,
    env_names       TEXT NOT NULL,
    sealed          BYTEA,
    revision        BIGINT NOT NULL,
    look            TEXT NOT NULL,
    health          TEXT NOT NULL,
    health_why      TEXT NOT NULL,
    looked_at       BIGINT,
    look_due_at     BIGINT,
    deleted_at      BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT connections_version CHECK (version > 0),
    CONSTRAINT connections_pk PRIMARY KEY (id)
);
CREATE INDEX connections_member ON connections (member_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX connections_shared ON connections (organization_id, id)
    WHERE shared AND deleted_at IS NULL;
CREATE INDEX connections_look_due ON connections (look_due_at)
    WHERE look_due_at IS NOT NULL;

CREATE TABLE host_tools (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    description     TEXT NOT NULL,
    schema          TEXT NOT NULL,
    endpoint        TEXT NOT NULL,
    sealed          BYTEA,
    approval        BOOLEAN NOT NULL,
    tags            TEXT NOT NULL,
    repeat_safe     BOOLEAN NOT NULL,
    revision        BIGINT NOT NULL,
    deleted_at      BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT host_tools_version CHECK (version > 0),
    CONSTRAINT host_tools_pk PRIMARY KEY (id)
);
CREATE UNIQUE INDEX host_tools_name ON host_tools (organization_id, name)
    WHERE deleted_at IS NULL;
CREATE INDEX host_tools_organization ON host_tools (organization_id, id)
    WHERE deleted_at IS NULL;

CREATE TABLE chats (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL,
    mode            TEXT NOT NULL,
    title           TEXT NOT NULL,
    status          TEXT NOT NULL,
    parent          TEXT NOT NULL,
    tainted         BOOLEAN NOT NULL,
    turn_id         TEXT COLLATE "C" NOT NULL,
    last_turn_id    TEXT COLLATE "C" NOT NULL,
    last_item       BIGINT NOT NULL,
    last_event      BIGINT NOT NULL,
    last_input      BIGINT NOT NULL,
    deleted_at      BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT chats_version CHECK (version > 0),
    CONSTRAINT chats_pk PRIMARY KEY (id)
) WITH (fillfactor = 85);
CREATE INDEX chats_member ON chats (member_id, id)
    WHERE deleted_at IS NULL;

CREATE TABLE turns (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    authority       TEXT NOT NULL,
    status          TEXT NOT NULL,
    steps           BIGINT NOT NULL,
    open_calls      BIGINT NOT NULL,
    tries           BIGINT NOT NULL,
    answer          TEXT NOT NULL,
    error           TEXT NOT NULL,
    input_tokens    BIGINT NOT NULL,
    output_tokens   BIGINT NOT NULL,
    cost_nanos      BIGINT NOT NULL,
    due_at          BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT turns_version CHECK (version > 0),
    CONSTRAINT turns_pk PRIMARY KEY (id)
) WITH (fillfactor = 85);
CREATE INDEX turns_chat ON turns (chat_id, id);
CREATE INDEX turns_due ON turns (due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX turns_open ON turns (status)
    WHERE status IN ('Queued', 'Running', 'Waiting');

CREATE TABLE calls (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    turn_id         TEXT COLLATE "C" NOT NULL,
    step            BIGINT NOT NULL,
    "position"      BIGINT NOT NULL,
    model_id        TEXT NOT NULL,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    connection_id   TEXT COLLATE "C" NOT NULL,
    revision        BIGINT NOT NULL,
    tool            TEXT NOT NULL,
    arguments       TEXT NOT NULL,
    digest          TEXT NOT NULL,
    reason          TEXT NOT NULL,
    repeatable      BOOLEAN NOT NULL,
    waited          BOOLEAN NOT NULL,
    status          TEXT NOT NULL,
    decided         TEXT NOT NULL,
    request_id      TEXT COLLATE "C" NOT NULL,
    result          TEXT NOT NULL,
    sends           BIGINT NOT NULL,
    lease           TEXT NOT NULL,
    lease_until     BIGINT,
    sent_at         BIGINT,
    ended_at        BIGINT,
    due_at          BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT calls_version CHECK (version > 0),
    CONSTRAINT calls_pk PRIMARY KEY (id),
    CONSTRAINT calls_place UNIQUE (turn_id, step, position)
) WITH (fillfactor = 85);
CREATE INDEX calls_chat ON calls (chat_id);
CREATE INDEX calls_due ON calls (status, due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX calls_unknown ON calls (id)
    WHERE status = 'unknown' AND ended_at IS NULL;

CREATE TABLE requests (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    reason          TEXT NOT NULL,
    approver_tag    TEXT NOT NULL,
    approver_user   TEXT COLLATE "C" NOT NULL,
    approver_bot    TEXT COLLATE "C" NOT NULL,
    approver_grant  TEXT COLLATE "C" NOT NULL,
    approver_rule   TEXT COLLATE "C" NOT NULL,
    chain           TEXT NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    turn_id         TEXT COLLATE "C" NOT NULL,
    call_id         TEXT COLLATE "C" NOT NULL,
    delegation_id   TEXT COLLATE "C" NOT NULL,
    arguments       TEXT NOT NULL,
    app             TEXT NOT NULL,
    unknown         TEXT NOT NULL,
    endorsements    TEXT NOT NULL,
    tags            TEXT NOT NULL,
    review_verdict  TEXT NOT NULL,
    status          TEXT NOT NULL,
    decision        TEXT NOT NULL,
    revision        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    CONSTRAINT requests_version CHECK (version > 0),
    CONSTRAINT requests_pk PRIMARY KEY (id)
) WITH (fillfactor = 90);
CREATE INDEX requests_organization ON requests (organization_id, id);
CREATE INDEX requests_approver ON requests (approver_user, id);
CREATE INDEX requests_bot ON requests (bot_id, id);
CREATE INDEX requests_chat ON requests (chat_id, id);
CREATE INDEX requests_pending_approver ON requests (approver_user, id)
    WHERE status = 'pending';
CREATE INDEX requests_pending_member ON requests (member_id, id)
    WHERE status = 'pending';
CREATE INDEX requests_pending_bot ON requests (bot_id, member_id, id)
    WHERE status = 'pending';
CREATE INDEX requests_pending_turn ON requests (turn_id)
    WHERE status = 'pending';
CREATE INDEX requests_due ON requests (expires_at, created_at)
    WHERE status = 'pending';

CREATE TABLE grants (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    decision        TEXT NOT NULL,
    scope           TEXT NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    revision        BIGINT NOT NULL,
    source          TEXT NOT NULL,
    request_id      TEXT COLLATE "C" NOT NULL,
    settle_due_at   BIGINT,
    created_at      BIGINT NOT NULL,
    revoked_at      BIGINT,
    version         BIGINT NOT NULL,
    CONSTRAINT grants_version CHECK (version > 0),
    CONSTRAINT grants_pk PRIMARY KEY (id)
);
CREATE INDEX grants_bot ON grants (bot_id, member_id)
    WHERE revoked_at IS NULL;
CREATE INDEX grants_settle_due ON grants (settle_due_at)
    WHERE settle_due_at IS NOT NULL;

CREATE TABLE rules (
    id              TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    bot_id          TEXT COLLATE "C" NOT NULL,
    "text"          TEXT NOT NULL,
    effect          TEXT NOT NULL,
    enabled         BOOLEAN NOT NULL,
    source          TEXT NOT NULL,
    request_id      TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    deleted_at      BIGINT,
    version         BIGINT NOT NULL,
    CONSTRAINT rules_version CHECK (version > 0),
    CONSTRAINT rules_pk PRIMARY KEY (id)
);

CREATE TABLE items (
    chat_id    TEXT COLLATE "C" NOT NULL,
    sequence   BIGINT NOT NULL,
    turn_id    TEXT COLLATE "C" NOT NULL,
    step       BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    author     TEXT NOT NULL,
    "text"     TEXT NOT NULL,
    call_id    TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT items_pk PRIMARY KEY (chat_id, sequence)
);

CREATE TABLE inputs (
    id         TEXT COLLATE "C" NOT NULL,
    chat_id    TEXT COLLATE "C" NOT NULL,
    sequence   BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    author     TEXT NOT NULL,
    "text"     TEXT NOT NULL,
    authority  TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT inputs_pk PRIMARY KEY (id),
    CONSTRAINT inputs_place UNIQUE (chat_id, sequence)
);

CREATE TABLE events (
    organization_id TEXT COLLATE "C" NOT NULL,
    member_id       TEXT COLLATE "C" NOT NULL,
    chat_id         TEXT COLLATE "C" NOT NULL,
    sequence        BIGINT NOT NULL,
    "position"      BIGINT NOT NULL,
    kind            TEXT NOT NULL,
    subject         TEXT NOT NULL,
    data            TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    CONSTRAINT events_pk PRIMARY KEY (chat_id, sequence)
);
CREATE INDEX events_member ON events (member_id, "position");

CREATE TABLE kept_answers (
    member_id   TEXT COLLATE "C" NOT NULL,
    "key"       TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    status      BIGINT NOT NULL,
    body        BYTEA,
    chat_id     TEXT COLLATE "C" NOT NULL,
    until       BIGINT,
    created_at  BIGINT NOT NULL,
    CONSTRAINT kept_answers_pk PRIMARY KEY (member_id, "key")
);
CREATE INDEX kept_answers_chat ON kept_answers (chat_id)
    WHERE chat_id <> '';
CREATE INDEX kept_answers_until ON kept_answers (until)
    WHERE until IS NOT NULL;
-- Tells cheaply, at a start, whether there are positions above those to come.
CREATE INDEX events_position ON events USING brin ("position");

-- What is added to a transaction ID before it becomes the position of an event, so
-- that positions go on rising when the data is restored into another cluster.
CREATE TABLE event_offset (
    only_row BOOLEAN NOT NULL DEFAULT TRUE,
    value    BIGINT NOT NULL,
    CONSTRAINT event_offset_pk PRIMARY KEY (only_row),
    CONSTRAINT event_offset_only_row CHECK (only_row)
);
INSERT INTO event_offset (value) VALUES (0);
