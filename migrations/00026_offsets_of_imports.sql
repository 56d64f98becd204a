-- Totals of several imports of history add up. Each day of an import is marked if totals contain it. An offset is the sum of
-- the numbers that were set by hand and of these days. Instances of 0.2.0 read and write that sum.

-- +goose Up
ALTER TABLE history_days
    ADD COLUMN in_totals boolean NOT NULL DEFAULT false;
ALTER TABLE history
    ADD COLUMN uv bigint;
ALTER TABLE offsets
    ADD COLUMN history_hot bigint  NOT NULL DEFAULT 0,
    ADD COLUMN history_pv  bigint  NOT NULL DEFAULT 0,
    ADD COLUMN history_uv  bigint  NOT NULL DEFAULT 0,
    ADD COLUMN by_hand     boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE offsets
    DROP COLUMN history_hot CASCADE,
    DROP COLUMN history_pv CASCADE,
    DROP COLUMN history_uv CASCADE,
    DROP COLUMN by_hand CASCADE;
ALTER TABLE history
    DROP COLUMN uv CASCADE;
ALTER TABLE history_days
    DROP COLUMN in_totals CASCADE;
