-- The obvious design of the tables: the uri itself is in every key.

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
) WITH (fillfactor = 50); -- as in Footfall's tables: every visit updates two of these rows

CREATE TABLE visitors (
    uri  text   NOT NULL,
    ip   inet   NOT NULL,
    rank bigint NOT NULL, -- not unique here: the naive ways assign a rank to two visitors or to none

    PRIMARY KEY (uri, ip)
);
