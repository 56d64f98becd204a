-- What is there while visits are made up: the visits, and what they are for each visitor, target
-- and day.

CREATE TEMPORARY TABLE drawn (
    n       integer NOT NULL, -- in their order
    day_id  integer NOT NULL,
    page_id bigint  NOT NULL,
    site_id bigint  NOT NULL,
    ip      inet    NOT NULL
);

CREATE TEMPORARY TABLE came (
    page_id      bigint  NOT NULL, -- or a site's
    site_id      bigint,           -- NULL: it is one
    day_id       integer NOT NULL,
    previous_day integer NOT NULL, -- 0: never before
    n            integer NOT NULL, -- the first visit of the day
    hot          bigint  NOT NULL,
    ip           inet    NOT NULL
);
