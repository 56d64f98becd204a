-- Totals of several imports of history add up. The days of an import say whether totals have them; an offset
-- is the sum of the numbers that were set by hand and of these days. Instances of 0.2.0 read and write that sum.

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

COMMENT ON COLUMN history_days.in_totals IS 'Offsets contain the numbers of this day, unless its site was counted here on it (history import --offsets).';
COMMENT ON COLUMN history.uv             IS 'Visitors whom the import has on no earlier day: their sum is uv of the offset. Null: the import has no ids of visitors.';
COMMENT ON COLUMN offsets.history_hot    IS 'The part of hot that is from history. The rest was set by hand, or by 0.2.0.';
COMMENT ON COLUMN offsets.history_pv     IS 'The same part of pv.';
COMMENT ON COLUMN offsets.history_uv     IS 'The same part of uv.';
COMMENT ON COLUMN offsets.by_hand        IS 'The rest was set by hand with 0.3.0 or later. False: 0.2.0 may have set it for an import.';

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
