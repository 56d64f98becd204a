-- The simplest design of the tables: every key contains the uri itself.

CREATE TABLE visits (
    ip     inet    NOT NULL,
    day_id integer NOT NULL,
    uri    text    NOT NULL,

    PRIMARY KEY (ip, day_id, uri)
);

CREATE TABLE counters (
    uri text   PRIMARY KEY,
    pv  bigint NOT NULL,
    uv  bigint NOT NULL,
    hot bigint NOT NULL
) WITH (fillfactor = 50); -- as in Footfall's tables, because every visit updates two of these rows

CREATE TABLE visitors (
    uri  text   NOT NULL,
    ip   inet   NOT NULL,
    rank bigint NOT NULL, -- not unique here: the naive ways assign some ranks to two visitors, and some to none

    PRIMARY KEY (uri, ip)
);
