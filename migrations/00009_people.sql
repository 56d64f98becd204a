-- Who is whom: ids of visitors that lead to one person, and what a person is.

-- +goose Up
-- A row an id. It leads to another id, or is a person, who may have tags. Rows are kept for 35 to 70
-- days after their id was used last: a row that is used is copied into the table of the present
-- period, and the other one is emptied as a whole when its turn comes (turn_people). Where an id has
-- a row in both, that of the present period holds.
--
-- It has no foreign keys, which would cost more than the rest of a row: its apps and tags are looked
-- up before, and go after it.
CREATE TABLE people (
    app_id  integer  NOT NULL,
    period  smallint NOT NULL,
    height  smallint NOT NULL,
    id      inet     NOT NULL,
    person  inet,
    tag_ids integer[],

    PRIMARY KEY (period, app_id, id),
    CONSTRAINT people_lead_to_others  CHECK (person <> id),
    -- Four steps lead to a person at most.
    CONSTRAINT people_height_range    CHECK (height BETWEEN 0 AND 4 - (person IS NOT NULL)::integer),
    CONSTRAINT people_tags_of_persons CHECK (person IS NULL OR tag_ids IS NULL),
    CONSTRAINT people_tags_are_some   CHECK (cardinality(tag_ids) BETWEEN 1 AND 8)
) PARTITION BY LIST (period);

CREATE TABLE people_0 PARTITION OF people FOR VALUES IN (0);
CREATE TABLE people_1 PARTITION OF people FOR VALUES IN (1);

COMMENT ON TABLE  people         IS 'Ids of visitors that lead to a person, and persons; kept for 35 to 70 days after they were used last.';
COMMENT ON TABLE  people_0       IS 'The rows of one period: a partition of people.';
COMMENT ON TABLE  people_1       IS 'The rows of the other period: a partition of people.';
COMMENT ON COLUMN people.app_id  IS 'The app, which tells visitors apart by ids.';
COMMENT ON COLUMN people.period  IS 'Which of the two tables has the row: people_period() is the one that is written to.';
COMMENT ON COLUMN people.height  IS 'How many steps the longest way to this id may have: as many, or more where ids on it went.';
COMMENT ON COLUMN people.id      IS 'The id, as a visitor''s.';
COMMENT ON COLUMN people.person  IS 'The id that it leads to. Null: it is a person itself.';
COMMENT ON COLUMN people.tag_ids IS 'The tags of the person. Null: none.';

INSERT INTO epochs (name, value)
VALUES ('people', floor(extract(epoch FROM now()) / (35 * 24 * 60 * 60)));

-- So that what is resolved, or remembered of visitors, is so anew after ids were taken out.
CREATE TRIGGER people_erased
    AFTER DELETE ON people
    FOR EACH STATEMENT EXECUTE FUNCTION erasure_raises_epoch();

-- +goose Down
DELETE FROM epochs WHERE name = 'people';
DROP TABLE people;
