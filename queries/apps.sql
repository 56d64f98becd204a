-- Apps: who counts.

-- name: AppsList :many
-- All apps, by name.
SELECT *
FROM apps
ORDER BY name;

-- name: AppsEpoch :one
-- Rises with every change of apps.
SELECT value
FROM epochs
WHERE name = 'apps';

-- name: AppLock :one
-- One app by name, locked against change, and against first visits to new pages, until the
-- transaction ends.
SELECT *
FROM apps
WHERE name = @name
FOR UPDATE;

-- name: AppShare :one
-- The same, while others make pages of it.
SELECT *
FROM apps
WHERE name = @name
FOR SHARE;

-- name: AppCounts :one
-- Whether anything has been counted for an app, or accepted to be, or is written of its people.
SELECT (EXISTS (SELECT FROM pages AS p WHERE p.app_id = @app_id) OR inbox_behind(@app_id) > 0
        OR (SELECT true FROM people AS p WHERE p.period IN (0, 1) AND p.app_id = @app_id ORDER BY p.period, p.app_id, p.id LIMIT 1) IS NOT NULL)::boolean AS counts;

-- name: AppAdd :execrows
-- Adds an app with the settings of a new one, unless the name is taken.
INSERT INTO apps (name)
VALUES (@name)
ON CONFLICT (name) DO NOTHING;

-- name: BrowsersTell :exec
-- Has instances refused from now on that do not know the way by address and browser.
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
-- The apps whose rows of visits get no tags.
SELECT id
FROM apps
WHERE NOT filters;

-- name: BasisRaise :exec
-- Makes instances read anew what they go by: no batch commits that was made before.
UPDATE epochs
SET value = value + 1
WHERE name = 'erasures';

-- The instances that keep apps in memory hold a shared lock on the epoch that they have read. Who
-- changes apps waits until nobody holds an older one; an instance that dies lets go by itself.

-- name: AppsListen :exec
-- Asks for a wake-up with every change of apps.
LISTEN footfall_apps;

-- name: AppsEpochHold :exec
-- Holds an epoch, shared with other instances, until the session ends or lets go of it.
SELECT pg_advisory_lock_shared(hashtext('footfall.apps'), @epoch::integer);

-- name: AppsEpochLetGo :exec
-- Lets go of an epoch.
SELECT pg_advisory_unlock_shared(hashtext('footfall.apps'), @epoch::integer);

-- name: AppsEpochsHeldBefore :one
-- How many instances still hold an epoch before this one.
SELECT apps_epochs_held_before(@epoch)::bigint AS instances;

-- name: AppsToRead :many
-- All apps, by name, with what reports on them go by, which is all that footfall_report may read of
-- an app.
SELECT id, name, tz, ipv6_prefix, access, sites, keep_query, visitor, secret_id, hashed_as, cell
FROM apps
ORDER BY name;

-- Names that lead to cells (functions/elsewhere.sql).

-- name: NameClaim :one
-- Lets a name lead to a cell, unless it leads elsewhere; to which one it leads. '': to none, since the
-- app is here.
SELECT claim_app(@name, @cell)::text AS cell;

-- name: NameLetGo :exec
-- Lets a name lead nowhere any more that has led to a cell for so many seconds.
SELECT let_go_app(@name, @cell, make_interval(secs => @seconds));

-- name: NameLead :one
-- Lets a name that leads to a cell lead to another one, and to an app that was added then; whether it did.
SELECT coalesce(lead_app(@name, @from_cell, @to_cell, sqlc.narg('began')::timestamptz), false)::boolean AS led;
