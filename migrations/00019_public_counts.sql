-- Nobody is told numbers without a key unless the app says so. What apps of 0.1.0 did stays as it was:
-- off closed badges alone, and told numbers in answers; open apps showed all that they had; those
-- for callers with a key told nothing. To instances of 0.1.0, answers is what off is. In a cell, what
-- changes tables and what wakes the instances may not share a transaction: so each statement has one of
-- its own, and the step can be taken again wherever it ended.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE apps DROP CONSTRAINT IF EXISTS apps_public_counts_are_known;
ALTER TABLE apps
    ADD CONSTRAINT apps_public_counts_are_known
        CHECK (public_counts IN ('off', 'answers', 'read') OR (public_counts = 'count' AND access <> 'key'));
-- +goose StatementBegin
DO $$
BEGIN
    -- Where there is none nothing is changed: an app that was changed is one that there was.
    IF EXISTS (SELECT FROM apps WHERE public_counts = 'off' AND access <> 'key') THEN
        UPDATE apps
        SET public_counts = CASE access WHEN 'open' THEN 'read' ELSE 'answers' END
        WHERE public_counts = 'off'
          AND access <> 'key';
    END IF;
END
$$;
-- +goose StatementEnd

COMMENT ON COLUMN apps.public_counts IS 'Which numbers are told without a key. off: none. answers: those of sites and pages, in answers to visits and questions. read: these, and badges. count: these, and badges count visits where they are asked to. Never those of events.';

-- +goose Down
UPDATE apps SET public_counts = 'off' WHERE public_counts = 'answers';
ALTER TABLE apps DROP CONSTRAINT apps_public_counts_are_known;
ALTER TABLE apps
    ADD CONSTRAINT apps_public_counts_are_known
        CHECK (public_counts IN ('off', 'read') OR (public_counts = 'count' AND access <> 'key'));
COMMENT ON COLUMN apps.public_counts IS 'What badges do, which anybody may show. off: nothing. read: show sums of pages and sites. count: the same, and count visits where they are asked to.';
