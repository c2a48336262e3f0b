-- The first schema.
-- Locks: the one writer, while new tables are made in an empty file, in one
-- transaction.
-- Way back: remove the file; there is nothing to keep before the first start.
--
-- Times are microseconds since the epoch. Texts that hold JSON come back byte for
-- byte. The tables are those of the other database, column for column.

-- +goose Up

CREATE TABLE organizations (
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    settings   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    CONSTRAINT organizations_version CHECK (version > 0),
    CONSTRAINT organizations_pk PRIMARY KEY (id)
) STRICT;

CREATE TABLE members (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    name            TEXT NOT NULL,
    permissions     TEXT NOT NULL,
    main_bot_id     TEXT NOT NULL,
    disabled_at     INTEGER,
    closing_due_at  INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT members_version CHECK (version > 0),
    CONSTRAINT members_pk PRIMARY KEY (id),
    CONSTRAINT members_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
) STRICT;
CREATE INDEX members_organization ON members (organization_id, id);
CREATE INDEX members_closing_due ON members (closing_due_at)
    WHERE closing_due_at IS NOT NULL;

CREATE TABLE tokens (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    name            TEXT NOT NULL,
    hash            TEXT NOT NULL,
    scopes          TEXT NOT NULL,
    expires_at      INTEGER,
    last_used_at    INTEGER,
    revoked_at      INTEGER,
    closing_due_at  INTEGER,
    created_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT tokens_version CHECK (version > 0),
    CONSTRAINT tokens_pk PRIMARY KEY (id),
    CONSTRAINT tokens_hash UNIQUE (hash),
    CONSTRAINT tokens_member_fk FOREIGN KEY (member_id) REFERENCES members (id)
) STRICT;
CREATE INDEX tokens_organization ON tokens (organization_id, id);
CREATE INDEX tokens_closing_due ON tokens (closing_due_at)
    WHERE closing_due_at IS NOT NULL;

CREATE TABLE bots (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    kind            TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    owner_id        TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    shared          INTEGER NOT NULL,
    name            TEXT NOT NULL,
    role            TEXT NOT NULL,
    instructions    TEXT NOT NULL,
    model           TEXT NOT NULL,
    memory          TEXT NOT NULL,
    archived_at     INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT bots_version CHECK (version > 0),
    CONSTRAINT bots_pk PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX bots_main ON bots (member_id)
    WHERE kind = 'main';
CREATE INDEX bots_member ON bots (member_id, id);
CREATE INDEX bots_shared ON bots (organization_id, id)
    WHERE shared;

CREATE TABLE connections (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    shared          INTEGER NOT NULL,
    name            TEXT NOT NULL,
    transport       TEXT NOT NULL,
    url             TEXT NOT NULL,
    command         TEXT NOT NULL,
    args            TEXT NOT NULL,
    header_names    TEXT NOT NULL,
    env_names       TEXT NOT NULL,
    sealed          BLOB,
    revision        INTEGER NOT NULL,
    look            TEXT NOT NULL,
    health          TEXT NOT NULL,
    health_why      TEXT NOT NULL,
    looked_at       INTEGER,
    look_due_at     INTEGER,
    deleted_at      INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT connections_version CHECK (version > 0),
    CONSTRAINT connections_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX connections_member ON connections (member_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX connections_shared ON connections (organization_id, id)
    WHERE shared AND deleted_at IS NULL;
CREATE INDEX connections_look_due ON connections (look_due_at)
    WHERE look_due_at IS NOT NULL;

CREATE TABLE host_tools (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    schema          TEXT NOT NULL,
    endpoint        TEXT NOT NULL,
    sealed          BLOB,
    approval        INTEGER NOT NULL,
    tags            TEXT NOT NULL,
    repeat_safe     INTEGER NOT NULL,
    revision        INTEGER NOT NULL,
    deleted_at      INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT host_tools_version CHECK (version > 0),
    CONSTRAINT host_tools_pk PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX host_tools_name ON host_tools (organization_id, name)
    WHERE deleted_at IS NULL;
CREATE INDEX host_tools_organization ON host_tools (organization_id, id)
    WHERE deleted_at IS NULL;

CREATE TABLE chats (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    kind            TEXT NOT NULL,
    mode            TEXT NOT NULL,
    title           TEXT NOT NULL,
    status          TEXT NOT NULL,
    parent          TEXT NOT NULL,
    tainted         INTEGER NOT NULL,
    turn_id         TEXT NOT NULL,
    last_turn_id    TEXT NOT NULL,
    last_item       INTEGER NOT NULL,
    last_event      INTEGER NOT NULL,
    last_input      INTEGER NOT NULL,
    deleted_at      INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT chats_version CHECK (version > 0),
    CONSTRAINT chats_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX chats_member ON chats (member_id, id)
    WHERE deleted_at IS NULL;

CREATE TABLE turns (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    authority       TEXT NOT NULL,
    status          TEXT NOT NULL,
    steps           INTEGER NOT NULL,
    open_calls      INTEGER NOT NULL,
    tries           INTEGER NOT NULL,
    answer          TEXT NOT NULL,
    error           TEXT NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_nanos      INTEGER NOT NULL,
    due_at          INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT turns_version CHECK (version > 0),
    CONSTRAINT turns_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX turns_chat ON turns (chat_id, id);
CREATE INDEX turns_due ON turns (due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX turns_open ON turns (status)
    WHERE status IN ('Queued', 'Running', 'Waiting');

CREATE TABLE calls (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    turn_id         TEXT NOT NULL,
    step            INTEGER NOT NULL,
    "position"      INTEGER NOT NULL,
    model_id        TEXT NOT NULL,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    connection_id   TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    tool            TEXT NOT NULL,
    arguments       TEXT NOT NULL,
    digest          TEXT NOT NULL,
    reason          TEXT NOT NULL,
    repeatable      INTEGER NOT NULL,
    waited          INTEGER NOT NULL,
    status          TEXT NOT NULL,
    decided         TEXT NOT NULL,
    request_id      TEXT NOT NULL,
    result          TEXT NOT NULL,
    sends           INTEGER NOT NULL,
    lease           TEXT NOT NULL,
    lease_until     INTEGER,
    sent_at         INTEGER,
    ended_at        INTEGER,
    due_at          INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT calls_version CHECK (version > 0),
    CONSTRAINT calls_pk PRIMARY KEY (id),
    CONSTRAINT calls_place UNIQUE (turn_id, step, position)
) STRICT;
CREATE INDEX calls_chat ON calls (chat_id);
CREATE INDEX calls_due ON calls (status, due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX calls_unknown ON calls (id)
    WHERE status = 'unknown' AND ended_at IS NULL;

CREATE TABLE requests (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    reason          TEXT NOT NULL,
    approver_tag    TEXT NOT NULL,
    approver_user   TEXT NOT NULL,
    approver_bot    TEXT NOT NULL,
    approver_grant  TEXT NOT NULL,
    approver_rule   TEXT NOT NULL,
    chain           TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    turn_id         TEXT NOT NULL,
    call_id         TEXT NOT NULL,
    delegation_id   TEXT NOT NULL,
    arguments       TEXT NOT NULL,
    app             TEXT NOT NULL,
    unknown         TEXT NOT NULL,
    endorsements    TEXT NOT NULL,
    tags            TEXT NOT NULL,
    review_verdict  TEXT NOT NULL,
    status          TEXT NOT NULL,
    decision        TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    CONSTRAINT requests_version CHECK (version > 0),
    CONSTRAINT requests_pk PRIMARY KEY (id)
) STRICT;
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
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    decision        TEXT NOT NULL,
    scope           TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    source          TEXT NOT NULL,
    request_id      TEXT NOT NULL,
    settle_due_at   INTEGER,
    created_at      INTEGER NOT NULL,
    revoked_at      INTEGER,
    version         INTEGER NOT NULL,
    CONSTRAINT grants_version CHECK (version > 0),
    CONSTRAINT grants_pk PRIMARY KEY (id)
) STRICT;
CREATE INDEX grants_bot ON grants (bot_id, member_id)
    WHERE revoked_at IS NULL;
CREATE INDEX grants_settle_due ON grants (settle_due_at)
    WHERE settle_due_at IS NOT NULL;

CREATE TABLE rules (
    id              TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    bot_id          TEXT NOT NULL,
    "text"          TEXT NOT NULL,
    effect          TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    source          TEXT NOT NULL,
    request_id      TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    deleted_at      INTEGER,
    version         INTEGER NOT NULL,
    CONSTRAINT rules_version CHECK (version > 0),
    CONSTRAINT rules_pk PRIMARY KEY (id)
) STRICT;

CREATE TABLE items (
    chat_id    TEXT NOT NULL,
    sequence   INTEGER NOT NULL,
    turn_id    TEXT NOT NULL,
    step       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    author     TEXT NOT NULL,
    "text"     TEXT NOT NULL,
    call_id    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT items_pk PRIMARY KEY (chat_id, sequence)
) STRICT;

CREATE TABLE inputs (
    id         TEXT NOT NULL,
    chat_id    TEXT NOT NULL,
    sequence   INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    author     TEXT NOT NULL,
    "text"     TEXT NOT NULL,
    authority  TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT inputs_pk PRIMARY KEY (id),
    CONSTRAINT inputs_place UNIQUE (chat_id, sequence)
) STRICT;

CREATE TABLE events (
    organization_id TEXT NOT NULL,
    member_id       TEXT NOT NULL,
    chat_id         TEXT NOT NULL,
    sequence        INTEGER NOT NULL,
    "position"      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind            TEXT NOT NULL,
    subject         TEXT NOT NULL,
    data            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    CONSTRAINT events_place UNIQUE (chat_id, sequence)
) STRICT;
CREATE INDEX events_member ON events (member_id, "position");

CREATE TABLE kept_answers (
    member_id   TEXT NOT NULL,
    "key"       TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status      INTEGER NOT NULL,
    body        BLOB,
    chat_id     TEXT NOT NULL,
    until       INTEGER,
    created_at  INTEGER NOT NULL,
    CONSTRAINT kept_answers_pk PRIMARY KEY (member_id, "key")
) STRICT;
CREATE INDEX kept_answers_chat ON kept_answers (chat_id)
    WHERE chat_id <> '';
CREATE INDEX kept_answers_until ON kept_answers (until)
    WHERE until IS NOT NULL;
