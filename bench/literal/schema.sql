-- The tables as one would first write them down: the uri itself is in every key.

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
) WITH (fillfactor = 50); -- as Footfall's own: every visit updates two of these rows

CREATE TABLE visitors (
    uri  text   NOT NULL,
    ip   inet   NOT NULL,
    rank bigint NOT NULL, -- not unique here: the naive ways give one to two visitors, or to nobody

    PRIMARY KEY (uri, ip)
);
