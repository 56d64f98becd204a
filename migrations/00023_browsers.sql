-- Visitors may be told apart by address and browser. An instance of 0.1.0 would tell them apart by their
-- address for such an app: once there is one, tell_browsers() has it refused, by the version that its
-- batches bring. Until then it counts beside.

-- +goose Up
ALTER TABLE apps DROP CONSTRAINT apps_visitor_is_known;
ALTER TABLE apps
    ADD CONSTRAINT apps_visitor_is_known CHECK (visitor IN ('address', 'id', 'hashed', 'browser', 'daily'));

COMMENT ON COLUMN apps.visitor IS 'What tells visitors apart: address, id (said by the caller), hashed (keyed hash of the address), browser (one of the address and the names of browser and system), daily (one that turns each day). Fixed once something is counted.';

ALTER TABLE batches DROP CONSTRAINT batches_by_this_version;
ALTER TABLE batches
    ADD CONSTRAINT batches_by_this_version CHECK (schema_version IN (2, 3)) NOT VALID;

-- +goose Down
ALTER TABLE batches DROP CONSTRAINT batches_by_this_version;
ALTER TABLE batches
    ADD CONSTRAINT batches_by_this_version CHECK (schema_version = 2) NOT VALID;
ALTER TABLE apps DROP CONSTRAINT apps_visitor_is_known;
ALTER TABLE apps
    ADD CONSTRAINT apps_visitor_is_known CHECK (visitor IN ('address', 'id', 'hashed', 'daily'));
COMMENT ON COLUMN apps.visitor IS 'What tells visitors apart: address, id (said by the caller), hashed (keyed hash of the address), daily (one that turns each day). Fixed once something is counted.';
