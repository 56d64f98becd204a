-- Apps: groups of sites with common settings.

-- name: AppsList :many
-- All apps, by name.
SELECT *
FROM apps
ORDER BY name;

-- name: AppsEpoch :one
-- A number that increases with every change of apps.
SELECT value
FROM epochs
WHERE name = 'apps';

-- name: AppLock :one
-- Locks and returns the app with this name. Other changes of the app, and first visits to its new pages,
-- wait until the transaction ends.
SELECT *
FROM apps
WHERE name = @name
FOR UPDATE;

-- name: AppShare :one
-- Locks and returns the app with this name. Changes of the app wait until the transaction ends, but first
-- visits to its new pages do not.
SELECT *
FROM apps
WHERE name = @name
FOR SHARE;

-- name: AppCounts :one
-- Returns whether an app has counted visits, has visits in the inbox, or has rows in the table people.
SELECT (EXISTS (SELECT FROM pages AS p WHERE p.app_id = @app_id) OR inbox_behind(@app_id) > 0
        OR (SELECT true FROM people AS p WHERE p.period IN (0, 1) AND p.app_id = @app_id ORDER BY p.period, p.app_id, p.id LIMIT 1) IS NOT NULL)::boolean AS counts;

-- name: AppAdd :execrows
-- Adds an app with default settings, unless the name is taken.
INSERT INTO apps (name)
VALUES (@name)
ON CONFLICT (name) DO NOTHING;

-- name: OldVersionsRefuse :exec
-- Makes the database refuse batches of 0.1.0, which cannot distinguish browsers behind one address.
SELECT tell_browsers();

-- name: AppSet :exec
-- Replaces the settings of an app.
UPDATE apps
SET tz            = @tz,
    ipv6_prefix   = @ipv6_prefix,
    access        = @access,
    sites         = @sites,
    keep_query    = @keep_query,
    visitor       = @visitor,
    secret_id     = @secret_id,
    respect_dnt   = @respect_dnt,
    bots          = @bots,
    ignore        = @ignore,
    max_requests  = @max_requests,
    max_new_pages = @max_new_pages,
    retain_days   = @retain_days,
    forget_days   = @forget_days,
    public_counts = @public_counts,
    tags          = @tags,
    filters       = @filters,
    goals         = @goals,
    titles        = @titles,
    public_top    = @public_top,
    public_events = @public_events
WHERE id = @id;

-- name: AppsUnfiltered :many
-- The apps whose visit rows store no tags.
SELECT id
FROM apps
WHERE NOT filters;

-- name: BasisRaise :exec
-- Changes the basis, so that all instances discard their caches. A batch that was prepared with the
-- earlier basis can no longer commit.
UPDATE epochs
SET value = value + 1
WHERE name = 'erasures';

-- The epoch of apps is a number that increases with every change of apps. Instances that cache apps hold a
-- shared lock on the epoch that they have read. A command that changes apps waits until no instance holds
-- an older epoch. If an instance dies, its lock is released.

-- name: AppsListen :exec
-- Subscribes to changes of apps.
LISTEN footfall_apps;

-- name: AppsEpochHold :exec
-- Takes a shared lock on an epoch of apps, until the session ends or releases the lock.
SELECT pg_advisory_lock_shared(hashtext('footfall.apps'), @epoch::integer);

-- name: AppsEpochLetGo :exec
-- Releases the lock on an epoch of apps.
SELECT pg_advisory_unlock_shared(hashtext('footfall.apps'), @epoch::integer);

-- name: AppsEpochsHeldBefore :one
-- The number of instances that still hold an epoch of apps before this one.
SELECT apps_epochs_held_before(@epoch)::bigint AS instances;

-- name: AppsToRead :many
-- All apps by name, with the columns that reports need. The role footfall_report may read no other
-- columns.
SELECT id, name, tz, ipv6_prefix, access, sites, keep_query, visitor, secret_id, hashed_as, cell
FROM apps
ORDER BY name;

-- Names of apps in cells, which are other databases (functions/elsewhere.sql).

-- name: NameClaim :one
-- Makes an app's name refer to a cell, unless the name already refers to another cell or belongs to an app
-- in this database. Returns the cell that the name refers to, or '' if the app is in this database.
SELECT claim_app(@name, @cell)::text AS cell;

-- name: NameLetGo :exec
-- Frees an app's name that has referred to a cell for at least this number of seconds.
SELECT let_go_app(@name, @cell, make_interval(secs => @seconds));

-- name: NameLead :one
-- Changes the cell to which a name refers, from @from_cell to @to_cell. @began is the time at which the
-- app in @to_cell was added, which identifies the app (null: unchanged). Returns whether the name referred
-- to @from_cell.
SELECT coalesce(lead_app(@name, @from_cell, @to_cell, sqlc.narg('began')::timestamptz), false)::boolean AS led;
