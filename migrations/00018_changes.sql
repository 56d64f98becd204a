-- What was changed: who has set what, in place of what.

-- +goose Up
CREATE TABLE changes (
    id     bigint      GENERATED ALWAYS AS IDENTITY,
    at     timestamptz NOT NULL DEFAULT now(),
    who    text        NOT NULL,
    app    text,
    what   text        NOT NULL,
    was    text        NOT NULL,
    is_now text        NOT NULL,

    CONSTRAINT changes_pkey PRIMARY KEY (id),
    CONSTRAINT changes_are_short CHECK (octet_length(who) BETWEEN 1 AND 500 AND octet_length(what) BETWEEN 1 AND 100 AND octet_length(was || is_now) <= 8192)
);
COMMENT ON TABLE  changes        IS 'What people and programs have changed, in the transaction that changed it. No password, key or token, and no visitor.';
COMMENT ON COLUMN changes.id     IS 'Number, in the order of the changes.';
COMMENT ON COLUMN changes.at     IS 'When.';
COMMENT ON COLUMN changes.who    IS 'Who: shell, account and its name, or key and its name.';
COMMENT ON COLUMN changes.app    IS 'The name of the app, which may be deleted since; null: it is no app''s.';
COMMENT ON COLUMN changes.what   IS 'What: a setting by its name, or key, link, note, webhook, offset, page, visitor, account …';
COMMENT ON COLUMN changes.was    IS 'What it was before; empty: nothing was.';
COMMENT ON COLUMN changes.is_now IS 'What it is from then on; empty: nothing is.';

-- +goose Down
DROP TABLE changes;
