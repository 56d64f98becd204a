-- In which language somebody who signs in wants pages.

-- +goose Up
ALTER TABLE accounts ADD COLUMN language text;

ALTER TABLE accounts ADD CONSTRAINT accounts_language_is_a_tag CHECK (language ~ '^[a-z]{2,3}(-[A-Za-z]{2,8})?$');

COMMENT ON COLUMN accounts.language IS 'In which language it is shown pages, as a tag of BCP 47. Null: in that of the browser.';

-- +goose Down
ALTER TABLE accounts DROP COLUMN language CASCADE;
