-- Notifications: how the messages of a webhook look, and when an open Request is told of
-- again and goes to a second Member.
-- Locks: both tables, for a moment; nothing is rewritten.
-- Way back: restore the database from before.

-- +goose Up

ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT 'standard';

ALTER TABLE requests ADD COLUMN remind_at BIGINT;
ALTER TABLE requests ADD COLUMN escalation TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN escalate_at BIGINT;
ALTER TABLE requests ADD COLUMN second_id TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX requests_remind_due ON requests (remind_at)
    WHERE remind_at IS NOT NULL;
CREATE INDEX requests_escalate_due ON requests (escalate_at)
    WHERE escalate_at IS NOT NULL;
CREATE INDEX requests_second ON requests (second_id, id)
    WHERE second_id <> '';
