-- Titles of pages, shown beside their paths.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN titles boolean NOT NULL DEFAULT true;

COMMENT ON COLUMN apps.titles IS 'Titles of its pages are kept.';

CREATE TABLE titles (
    page_id bigint      NOT NULL PRIMARY KEY,
    title   text        NOT NULL,
    told_at timestamptz NOT NULL,

    CONSTRAINT titles_page_id_fkey FOREIGN KEY (page_id) REFERENCES pages ON DELETE CASCADE,
    CONSTRAINT titles_title_length CHECK (octet_length(title) BETWEEN 1 AND 200)
);

COMMENT ON TABLE  titles         IS 'What pages call themselves, as several of their visitors have seen it, or a caller with a key has said.';
COMMENT ON COLUMN titles.page_id IS 'The page.';
COMMENT ON COLUMN titles.title   IS 'Its title: a line without control characters.';
COMMENT ON COLUMN titles.told_at IS 'Since when it has this one, which stays for an hour at least.';

-- +goose Down
DROP TABLE titles;
ALTER TABLE apps DROP COLUMN titles CASCADE;
