-- Who may read what: the schema report is for everybody who is let at it. What two roles may do is
-- granted by functions/grant_roles.sql, each time the schema is brought up to date.

-- +goose Up
CREATE SCHEMA report;

COMMENT ON SCHEMA report IS 'What Footfall offers to read: views and functions, each with a comment.';

-- +goose Down
-- The roles stay, for other databases of the server may use them. What they may do in this one
-- goes.
-- +goose StatementBegin
DO $$
DECLARE
    role text;
BEGIN
    -- Not from the role that migrates, should it have one of the names: the tables are its own.
    FOR role IN SELECT rolname FROM pg_roles WHERE rolname IN ('footfall_app', 'footfall_report') AND rolname <> current_user LOOP
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA footfall FROM %I', role);
        EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA footfall FROM %I', role);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA footfall FROM %I', role);
        EXECUTE format('REVOKE ALL ON SCHEMA footfall FROM %I', role);
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP SCHEMA report; -- and with it what would have been granted in it
