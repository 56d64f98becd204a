-- Comments of all tables and columns, which psql shows with \dt+ and \d+. Each statement must be on one line, because Footfall
-- reads this file line by line. Footfall runs only the statements whose comment differs from the one in the database.

-- Schema

COMMENT ON TABLE  goose_db_version            IS 'Migration steps (the files 0*.sql of migrations/) that were applied to this database. Written by the library goose.';
COMMENT ON COLUMN goose_db_version.id         IS 'Row number.';
COMMENT ON COLUMN goose_db_version.version_id IS 'Number of the migration step. 0: the empty schema.';
COMMENT ON COLUMN goose_db_version.is_applied IS 'Always true: reverting a step deletes its row.';
COMMENT ON COLUMN goose_db_version.tstamp     IS 'Time when the step was applied.';

COMMENT ON TABLE  schema_files      IS 'Hashes of the files of migrations/ from which this database was made. A Footfall program compares them with its own files.';
COMMENT ON COLUMN schema_files.name IS 'Name of a migration step, like 00001_schema.sql, or "functions": the files of functions/, report/, comments/ and cell/ together, except cell/database.sql.';
COMMENT ON COLUMN schema_files.hash IS 'SHA-256 of the file. For functions: a number that rises with each version, then the SHA-256.';

COMMENT ON TABLE  schema_objects      IS 'Functions and views that were created by the files of functions/ and report/. They are dropped before these files run again. Other objects stay.';
COMMENT ON COLUMN schema_objects.kind IS 'FUNCTION or VIEW.';
COMMENT ON COLUMN schema_objects.name IS 'Name as in an SQL statement. For a function: with the types of its arguments.';

COMMENT ON TABLE  epochs       IS 'Counters by which running instances notice changes, and the state of tasks that one instance performs for all instances. No value ever falls.';
COMMENT ON COLUMN epochs.name  IS 'Name of the counter. Its value rises in these cases. apps: rows of apps, keys, shares or offsets changed. erasures: visitors or pages were deleted or merged, or an app got its first rows in people. imports: an import wrote visitors. offsets: rows of offsets changed. retention: the daily task ran. people: a new period of the table people began. standby: the requirement of a synchronous standby changed.';
COMMENT ON COLUMN epochs.value IS 'apps, erasures, imports, offsets: number of changes. retention: the day, like 20190629, on which the daily task last completed, in the time zone where days begin last. people: the current period of 35 days, counted since 1970. standby: 0 before the first decision. Then odd while a synchronous standby is required, and even while none is required.';

-- Apps and access

COMMENT ON TABLE  apps               IS 'Apps and their settings. Every visit belongs to one app.';
COMMENT ON COLUMN apps.id            IS 'Number of the app, which other tables store as app_id.';
COMMENT ON COLUMN apps.name          IS 'Name of the app, which callers pass as app=…';
COMMENT ON COLUMN apps.tz            IS 'IANA time zone of the app''s days. Fixed after the first visit.';
COMMENT ON COLUMN apps.ipv6_prefix   IS 'Number of leading bits that two IPv6 addresses must share to count as one visitor. Fixed after the first visit.';
COMMENT ON COLUMN apps.access        IS 'Who can count visits. open: everyone, and the parameters ip and visitor of a request are trusted. sites: everyone, for the listed sites, but ip and visitor need a key. key: only callers with a key, for the listed sites.';
COMMENT ON COLUMN apps.sites         IS 'Sites that the app counts: host, host:port, or *.host for all subdomains. Empty if access is open: every site.';
COMMENT ON COLUMN apps.keep_query    IS 'Query parameters that distinguish pages, in the order in which page URIs contain them.';
COMMENT ON COLUMN apps.created_at    IS 'Time when the app was added.';
COMMENT ON COLUMN apps.visitor       IS 'What identifies a visitor. address: the IP address. id: an id from the caller. hashed: a keyed hash of the address. browser: a keyed hash of the address and the names of browser and system. daily: as hashed, with a new key each day. After the first visit, only address can still become hashed.';
COMMENT ON COLUMN apps.secret_id     IS 'Identifies the secret with which visitors are hashed, without revealing the secret. Null: visitors are stored as addresses.';
COMMENT ON COLUMN apps.respect_dnt   IS 'Whether visits are left out if the browser asks not to be tracked (DNT, Sec-GPC).';
COMMENT ON COLUMN apps.bots          IS 'count or skip: whether crawlers are counted. Null: they are skipped if access is not open and the caller is the visitor, or if the caller passes the visitor''s User-Agent.';
COMMENT ON COLUMN apps.ignore        IS 'Visits that are not counted: networks, ids of visitors, and referring hosts (from:…).';
COMMENT ON COLUMN apps.max_requests  IS 'Maximum number of requests per minute from one address (IPv6: from one /64 network). 0: no limit. Null: the default of the service.';
COMMENT ON COLUMN apps.max_new_pages IS 'Maximum number of new pages and sites per day. Visits to further new pages count for a page of their site that is named (other). 0: no limit. Null: the default of the service.';
COMMENT ON COLUMN apps.deleted_at    IS 'Time when the deletion of the app started. Since then nothing is counted for the app. Null: it is not being deleted.';
COMMENT ON COLUMN apps.retain_days   IS 'Number of days for which rows of visits are kept. 0: for ever. Counted sums are always kept.';
COMMENT ON COLUMN apps.forget_days   IS 'A site forgets a visitor after this many days without a visit. A later visit counts as a new visitor. 0: never.';
COMMENT ON COLUMN apps.public_counts IS 'Numbers that callers without a key can read. off: none. answers: numbers of sites and pages, in responses of the API. read: also numbers in badges. count: also numbers in badges that count visits. Numbers of events need public_events, too.';
COMMENT ON COLUMN apps.tags          IS 'Names of the tags that are counted: built-in ones, which always include hour, and the app''s own.';
COMMENT ON COLUMN apps.log_key       IS 'Random key for hashing access log lines, if visitors are stored as addresses. Null: no log was imported, or the lines are hashed with a key that is made from the secret of the service.';
COMMENT ON COLUMN apps.filters       IS 'Whether rows of visits store tags, so that reports can be filtered by tags.';
COMMENT ON COLUMN apps.goals         IS 'Goals, as filter conditions: event:signup or page:/thanks.';
COMMENT ON COLUMN apps.held_until    IS 'Set while stored addresses of visitors are being replaced with hashes. Nothing is counted for the app until this time, or until the column is null again.';
COMMENT ON COLUMN apps.hashed_from   IS 'First day whose sketches were made from hashes of visitors. Sketches of earlier days were made from addresses. 0: all sketches were made in the same way.';
COMMENT ON COLUMN apps.hashed_as     IS 'App number that the hashes of visitors contain, if the app was loaded from an export: its id in the first database. Null: the hashes contain apps.id.';
COMMENT ON COLUMN apps.titles        IS 'Whether titles of pages are stored.';
COMMENT ON COLUMN apps.cell          IS 'Cell (another database of the service) that contains the app. This database has only its name and the rights of accounts. Null: the app is in this database.';
COMMENT ON COLUMN apps.cell_began    IS 'Time when the app was created in its cell. If the cell has an app of this name with another time, it is a later app. Null: the time was not read yet.';
COMMENT ON COLUMN apps.moving_to     IS 'Cell to which the app is being moved. Nothing is counted for it here any more. Null: it is not being moved.';
COMMENT ON COLUMN apps.public_top    IS 'Whether callers without a key can list the most visited pages of the app''s sites. Has no effect while public_counts is off.';
COMMENT ON COLUMN apps.public_events IS 'Events whose numbers callers without a key can read: names (signup), or all names that start with a text (video/*). Has no effect while public_counts is off.';

COMMENT ON TABLE  keys            IS 'Keys of apps for callers of the API. The key itself is not stored.';
COMMENT ON COLUMN keys.id         IS 'Number of the key.';
COMMENT ON COLUMN keys.app_id     IS 'App to which the key gives access.';
COMMENT ON COLUMN keys.created_at IS 'Time when the key was created.';
COMMENT ON COLUMN keys.used_at    IS 'Time of the last use, accurate to about a minute.';
COMMENT ON COLUMN keys.revoked_at IS 'Time when the key was revoked. Null: it is valid.';
COMMENT ON COLUMN keys.name       IS 'The first characters of the key, which identify it in lists.';
COMMENT ON COLUMN keys.hash       IS 'SHA-256 of the whole key. A key has 256 random bits, so a slower hash is not needed.';
COMMENT ON COLUMN keys.scopes     IS 'Rights of the key. count: count visits. assert: also set the visitor of a visit. read: look up a visitor, and read reports. admin: change the app.';

COMMENT ON TABLE  admin_keys            IS 'Keys for programs that add, change and delete all apps and accounts. The key itself is not stored.';
COMMENT ON COLUMN admin_keys.id         IS 'Number of the key.';
COMMENT ON COLUMN admin_keys.created_at IS 'Time when the key was created.';
COMMENT ON COLUMN admin_keys.used_at    IS 'Time of the last use.';
COMMENT ON COLUMN admin_keys.revoked_at IS 'Time when the key was revoked. Null: it is valid.';
COMMENT ON COLUMN admin_keys.name       IS 'The first characters of the key, which identify it in lists.';
COMMENT ON COLUMN admin_keys.hash       IS 'SHA-256 of the whole key, which has 256 random bits.';

COMMENT ON TABLE  shares            IS 'Links to the dashboard that show an app or a site without a key. The link itself is not stored.';
COMMENT ON COLUMN shares.id         IS 'Number of the link.';
COMMENT ON COLUMN shares.app_id     IS 'App that the link shows.';
COMMENT ON COLUMN shares.last_day   IS 'Last day on which the link works, like 20190629, in the app''s time zone. At most five years ahead.';
COMMENT ON COLUMN shares.created_at IS 'Time when the link was created.';
COMMENT ON COLUMN shares.revoked_at IS 'Time when the link was revoked. Null: it was not revoked.';
COMMENT ON COLUMN shares.name       IS 'The first random characters of the link, which identify it in lists.';
COMMENT ON COLUMN shares.hash       IS 'SHA-256 of the random part of the link, which has 256 bits.';
COMMENT ON COLUMN shares.site       IS 'The only site that the link shows. Null: the whole app.';

COMMENT ON TABLE  accounts            IS 'Accounts of people who use the dashboard.';
COMMENT ON COLUMN accounts.id         IS 'Number of the account.';
COMMENT ON COLUMN accounts.owner      IS 'Whether the account can see every app and change everything.';
COMMENT ON COLUMN accounts.created_at IS 'Time when the account was created.';
COMMENT ON COLUMN accounts.name       IS 'Name for signing in. Null: the person chooses it with the account''s link.';
COMMENT ON COLUMN accounts.folded     IS 'The name in the form that is compared: without case, and with similar-looking characters made equal.';
COMMENT ON COLUMN accounts.password   IS 'argon2id hash of the password, with parameters and salt. Null: the account signs in through a proxy''s header, or its link was not used yet.';
COMMENT ON COLUMN accounts.language   IS 'Language of the pages, as a BCP 47 tag. Null: the language of the browser.';

COMMENT ON TABLE  account_apps            IS 'Apps that an account can see. Owners can see all apps and need no rows.';
COMMENT ON COLUMN account_apps.account_id IS 'The account.';
COMMENT ON COLUMN account_apps.app_id     IS 'The app.';
COMMENT ON COLUMN account_apps.may_change IS 'Whether the account can also change the app.';

COMMENT ON TABLE  account_sessions            IS 'Browsers that are signed in, for at most 30 days.';
COMMENT ON COLUMN account_sessions.id         IS 'Number of the session.';
COMMENT ON COLUMN account_sessions.account_id IS 'The account.';
COMMENT ON COLUMN account_sessions.created_at IS 'Time of signing in.';
COMMENT ON COLUMN account_sessions.used_at    IS 'Time of the last use, accurate to about a minute.';
COMMENT ON COLUMN account_sessions.hash       IS 'SHA-256 of the cookie, which has 256 random bits.';
COMMENT ON COLUMN account_sessions.browser    IS 'Names of the browser and its system.';

COMMENT ON TABLE  account_links            IS 'Links for choosing a password. Each works once.';
COMMENT ON COLUMN account_links.hash       IS 'SHA-256 of the secret part of the link, which has 256 random bits.';
COMMENT ON COLUMN account_links.account_id IS 'Account whose password the link sets, within 7 days. Null: the link creates the first account.';
COMMENT ON COLUMN account_links.created_at IS 'Time when the link was created.';

COMMENT ON TABLE  changes        IS 'Log of changes to apps and the service. Contains no password, key, token or visitor.';
COMMENT ON COLUMN changes.id     IS 'Number of the change, in order.';
COMMENT ON COLUMN changes.at     IS 'Time of the change.';
COMMENT ON COLUMN changes.who    IS 'Author of the change: shell, or an account or key with its name.';
COMMENT ON COLUMN changes.app    IS 'Name of the app, which may have been deleted since. Null: the change is not about one app.';
COMMENT ON COLUMN changes.what   IS 'Object of the change: the name of a setting, or key, link, note, webhook, offset, page, visitor, account …';
COMMENT ON COLUMN changes.was    IS 'Value before the change. Empty: none.';
COMMENT ON COLUMN changes.is_now IS 'Value after the change. Empty: none.';

COMMENT ON TABLE  notes        IS 'Notes about days, shown next to the numbers: a release, a campaign, an outage.';
COMMENT ON COLUMN notes.id     IS 'Number of the note.';
COMMENT ON COLUMN notes.app_id IS 'The app.';
COMMENT ON COLUMN notes.day_id IS 'Day in the app''s time zone, like 20190629.';
COMMENT ON COLUMN notes.site   IS 'Site that the note is about. Null: the whole app.';
COMMENT ON COLUMN notes.text   IS 'Text of the note.';

COMMENT ON TABLE  day_keys        IS 'Random keys with which the visitors of a day are hashed, for apps whose visitor setting is daily. A key is deleted after its day has ended in every time zone.';
COMMENT ON COLUMN day_keys.day_id IS 'The day, like 20190629.';
COMMENT ON COLUMN day_keys.key    IS 'Key for hashing addresses. It is useless without the secret of the service, which is not in this database.';

COMMENT ON TABLE  webhooks         IS 'URLs that are called when a page or site reaches visitor 1, 2, 5, 10, 20, 50 …';
COMMENT ON COLUMN webhooks.id      IS 'Number of the webhook. Together with the visitor''s number it identifies a call.';
COMMENT ON COLUMN webhooks.app_id  IS 'The app.';
COMMENT ON COLUMN webhooks.seen    IS 'Number of visitors, without offsets, up to which round numbers were looked for. The calls for these round numbers were sent, or are stored in the column waiting.';
COMMENT ON COLUMN webhooks.since   IS 'Time when the first call in the column waiting became due.';
COMMENT ON COLUMN webhooks.try_at  IS 'Time of the next attempt to send the first call in the column waiting.';
COMMENT ON COLUMN webhooks.private IS 'Whether the URL may lead to a private, loopback or link-local address.';
COMMENT ON COLUMN webhooks.uri     IS 'The page or site, as in pages.uri. It need not have a row in pages.';
COMMENT ON COLUMN webhooks.key     IS 'page_key(uri), as in pages.';
COMMENT ON COLUMN webhooks.url     IS 'URL that is called.';
COMMENT ON COLUMN webhooks.waiting IS 'Bodies of the calls that the receiver has not accepted yet, in order.';
COMMENT ON COLUMN webhooks.answers IS 'The receiver''s responses to the last calls, or the errors, each with its time. The latest is first.';
COMMENT ON COLUMN webhooks.salt    IS 'Random part of the key that signs the calls. Without it, webhooks with the same number in two databases with the same secret would share a key. Null: a webhook of 0.1.0, whose key has no random part.';

-- Targets and their sums

COMMENT ON TABLE  pages            IS 'Targets of visits: pages, and sites (rows whose site_id is null).';
COMMENT ON COLUMN pages.id         IS 'Number of the page or site, which other tables store as page_id or site_id.';
COMMENT ON COLUMN pages.site_id    IS 'Site of the page. Null: the row is a site.';
COMMENT ON COLUMN pages.app_id     IS 'App that counts the page or site. If two apps count the same uri, each of them has a row.';
COMMENT ON COLUMN pages.created_at IS 'Time when the page or site was first counted.';
COMMENT ON COLUMN pages.uri        IS 'Canonical URI without a scheme: example.com for a site, example.com/home for a page.';
COMMENT ON COLUMN pages.key        IS 'page_key(uri), the SHA-256 of the URI, for the unique index.';

COMMENT ON TABLE  page_tallies                IS 'Numbers of new pages, sites and tags of each app on the last day that had any. They are compared with the daily limits.';
COMMENT ON COLUMN page_tallies.app_id         IS 'The app.';
COMMENT ON COLUMN page_tallies.day_id         IS 'Last day with a new page or tag, like 20190629.';
COMMENT ON COLUMN page_tallies.today          IS 'New pages and sites on that day, including those that were deleted since.';
COMMENT ON COLUMN page_tallies.tags_today     IS 'New sources and campaigns on that day. They are limited because any visitor can invent their values.';
COMMENT ON COLUMN page_tallies.own_tags_today IS 'New tags of visits and people on that day whose names the app itself has chosen.';

COMMENT ON TABLE  titles         IS 'Titles of pages, as several visitors'' browsers or a caller with a key reported them.';
COMMENT ON COLUMN titles.page_id IS 'The page.';
COMMENT ON COLUMN titles.title   IS 'The title: one line without control characters.';
COMMENT ON COLUMN titles.told_at IS 'Time when the page got this title. A title is replaced after an hour at the earliest.';

COMMENT ON TABLE  counters         IS 'Numbers of each page and site over all days. A transaction that counts visits to a page or site locks its row.';
COMMENT ON COLUMN counters.page_id IS 'The page or site: pages.id.';
COMMENT ON COLUMN counters.hot     IS 'Number of visits.';
COMMENT ON COLUMN counters.pv      IS 'Visitors of each day, added up: the number of different (visitor, day) pairs.';
COMMENT ON COLUMN counters.uv      IS 'Number of visitors. This is also the rank of the newest visitor.';

COMMENT ON TABLE  offsets             IS 'Numbers from before Footfall that are added to the all-time totals of a page or site, but to no day and no other table.';
COMMENT ON COLUMN offsets.app_id      IS 'The app.';
COMMENT ON COLUMN offsets.hot         IS 'Number of visits to add.';
COMMENT ON COLUMN offsets.pv          IS 'Number to add to pv: the visitors of each day, added up.';
COMMENT ON COLUMN offsets.uv          IS 'Number of visitors to add. It is also added to ranks of visitors.';
COMMENT ON COLUMN offsets.uri         IS 'The page or site, as in pages.uri. It need not have a row in pages. Numbers of a site are its own, not the sum of its pages.';
COMMENT ON COLUMN offsets.key         IS 'page_key(uri), as in pages.';
COMMENT ON COLUMN offsets.told        IS 'Earlier values of uv, which are part of ranks that were shown before. Pairs: the number of counted visitors when uv changed, and uv until then. A removed offset keeps its row, with its other numbers 0, while the page or site has visitors.';
COMMENT ON COLUMN offsets.history_hot IS 'Part of hot that is from imported history (table history). The rest was set by hand, or by 0.2.0.';
COMMENT ON COLUMN offsets.history_pv  IS 'Part of pv that is from imported history.';
COMMENT ON COLUMN offsets.history_uv  IS 'Part of uv that is from imported history.';
COMMENT ON COLUMN offsets.by_hand     IS 'Whether the numbers that are not from imported history were set by hand with 0.3.0 or later. False: 0.2.0 may have set them for an import.';

COMMENT ON TABLE  days              IS 'Numbers of each page and site on each day. Their sums over all days are the numbers in counters.';
COMMENT ON COLUMN days.page_id      IS 'The page or site: pages.id.';
COMMENT ON COLUMN days.site_id      IS 'Site of the page. Null: the row is about a site.';
COMMENT ON COLUMN days.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN days.hot          IS 'Number of visits.';
COMMENT ON COLUMN days.pv           IS 'Number of visitors of the day.';
COMMENT ON COLUMN days.new_visitors IS 'Number of new visitors. 0 for a page (deleted), to which the numbers of deleted pages were moved, because their new visitors are not recorded.';

COMMENT ON TABLE  closed_days           IS 'Days that have ended in every time zone, and whose sketches were made (table sketches).';
COMMENT ON COLUMN closed_days.day_id    IS 'The day, like 20190629.';
COMMENT ON COLUMN closed_days.closed_at IS 'Time when the sketches were made.';

COMMENT ON TABLE  sketches         IS 'HyperLogLog sketches of the visitors of each page and site on each closed day. Standard error 1.625 %.';
COMMENT ON COLUMN sketches.page_id IS 'The page or site: pages.id.';
COMMENT ON COLUMN sketches.day_id  IS 'The day, like 20190629.';
COMMENT ON COLUMN sketches.entries IS 'Registers that are not 0, each as register number * 64 + value, in order.';

COMMENT ON TABLE  tops          IS 'Lists of the top 1,000 pages of each app, and of each of its sites, on each closed day.';
COMMENT ON COLUMN tops.app_id   IS 'The app.';
COMMENT ON COLUMN tops.site_id  IS 'The site. 0: all sites of the app.';
COMMENT ON COLUMN tops.day_id   IS 'The day, like 20190629.';
COMMENT ON COLUMN tops.by       IS 'Number by which the pages in the list are ordered: pv, uv or hot.';
COMMENT ON COLUMN tops.page_ids IS 'The pages, the one with the highest number first.';
COMMENT ON COLUMN tops.numbers  IS 'The number of each page on that day, in the order of page_ids.';

-- Visitors and visits

COMMENT ON TABLE  visitors           IS 'Visitors of each page and site, until they are erased or forgotten. uv and every rank can be checked with these rows.';
COMMENT ON COLUMN visitors.page_id   IS 'The page or site: pages.id.';
COMMENT ON COLUMN visitors.rank      IS 'Place of the visitor in the order of first visits to the page or site: 1, 2, 3 …';
COMMENT ON COLUMN visitors.first_day IS 'The earliest day on which the visitor was counted at the page or site, like 20190629.';
COMMENT ON COLUMN visitors.last_day  IS 'The latest day on which the visitor was counted at the page or site, like 20190629.';
COMMENT ON COLUMN visitors.ip        IS 'The visitor: an address (IPv6: the first of its network), or a hash or id in the form of an address.';

COMMENT ON TABLE  visits              IS 'Days on which a visitor visited a page or site. pv can be checked with these rows. Each day is a partition.';
COMMENT ON COLUMN visits.page_id      IS 'The page or site: pages.id.';
COMMENT ON COLUMN visits.day_id       IS 'Day in the app''s time zone, like 20190629.';
COMMENT ON COLUMN visits.previous_day IS 'The last earlier day on which the visitor visited the same page or site. 0: there is none, or it is not recorded, because the visit was to a page that was deleted since.';
COMMENT ON COLUMN visits.ip           IS 'The visitor, as in visitors.';
COMMENT ON COLUMN visits.tags         IS 'For a site: the tags of the visitor''s first counted visit on that day. {}: no tags. Null: not recorded, as for pages, for apps without filters, and in rows that instances before 0.2.0 wrote.';

COMMENT ON TABLE  open_returns              IS 'Numbers of visitors of a page or site on a day that is not closed yet, grouped by the last earlier day on which they visited it.';
COMMENT ON COLUMN open_returns.page_id      IS 'The page or site: pages.id.';
COMMENT ON COLUMN open_returns.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN open_returns.previous_day IS 'The last earlier day on which these visitors visited the page or site.';
COMMENT ON COLUMN open_returns.visitors     IS 'Number of visitors.';

COMMENT ON TABLE  packed_returns               IS 'Numbers of visitors of a page or site on a closed day, grouped by the last earlier day on which they visited it, in a compact format. The view returns unpacks them.';
COMMENT ON COLUMN packed_returns.page_id       IS 'The page or site: pages.id.';
COMMENT ON COLUMN packed_returns.day_id        IS 'The day, like 20190629.';
COMMENT ON COLUMN packed_returns.previous_days IS 'Bit k, counted from 1, is 1 if the last earlier visit of some visitors was k days before. The last bit is 1.';
COMMENT ON COLUMN packed_returns.visitors      IS 'For each bit k that is 1 in previous_days: the number of visitors whose last earlier visit was k days before, or more. All numbers have the same width.';

COMMENT ON TABLE  erased_visitors         IS 'Ranks of erased or forgotten visitors, up to 256 in a row. uv of a page or site is the number of its rows in visitors plus the number of its rows in the view erased_ranks.';
COMMENT ON COLUMN erased_visitors.page_id IS 'The page or site: pages.id.';
COMMENT ON COLUMN erased_visitors.part    IS 'The row covers ranks 256 * part + 1 to 256 * part + 256.';
COMMENT ON COLUMN erased_visitors.place   IS 'If only one rank of the row is erased: its place, from 0. The rank is 256 * part + 1 + place. It is not given to a new visitor.';
COMMENT ON COLUMN erased_visitors.places  IS 'If several ranks of the row are erased: bit n, from 0, is 1 if rank 256 * part + 1 + n is erased.';

COMMENT ON TABLE  erased_visits              IS 'Numbers of erased or forgotten visitors of a page or site by day. While all visits are kept, pv is the number of rows in visits plus the sum of visitors here.';
COMMENT ON COLUMN erased_visits.page_id      IS 'The page or site: pages.id.';
COMMENT ON COLUMN erased_visits.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN erased_visits.previous_day IS 'The last earlier day on which these visitors visited the page or site. 0: as in visits.previous_day.';
COMMENT ON COLUMN erased_visits.visitors     IS 'Number of visitors.';

COMMENT ON TABLE  visits_kept             IS 'First day whose visits are kept, for each app. An app without a row keeps all visits.';
COMMENT ON COLUMN visits_kept.app_id      IS 'The app.';
COMMENT ON COLUMN visits_kept.from_day    IS 'All visits from this day on have rows. Rows of earlier days are deleted or being deleted.';
COMMENT ON COLUMN visits_kept.gone_before IS 'All rows of visits of the app from before this day have been deleted.';

COMMENT ON TABLE  retention_pauses          IS 'Running imports of old visits. While an app has a row, none of its visits or visitors are deleted because of their age.';
COMMENT ON COLUMN retention_pauses.app_id   IS 'The app.';
COMMENT ON COLUMN retention_pauses.run      IS 'Unique number of the import.';
COMMENT ON COLUMN retention_pauses.from_day IS 'First day from which visits are imported, like 20190629.';
COMMENT ON COLUMN retention_pauses.until    IS 'Time when the pause ends. The import extends the pause while it makes progress.';

COMMENT ON TABLE  people         IS 'Ids that were linked to persons. A row leads from an id to its person, directly or through other ids. Persons have rows, too. Kept for 35 to 70 days after the last use.';
COMMENT ON COLUMN people.app_id  IS 'The app, whose visitor setting is id.';
COMMENT ON COLUMN people.period  IS 'Partition of the row, 0 or 1. people_period() returns the partition that is written to.';
COMMENT ON COLUMN people.height  IS 'At least the length of the longest chain of rows that leads from another id to this one.';
COMMENT ON COLUMN people.id      IS 'The id, as visitors.ip stores it.';
COMMENT ON COLUMN people.person  IS 'The id to which the row leads: the person, or an id nearer to the person. Null: the row''s own id is the person.';
COMMENT ON COLUMN people.tag_ids IS 'Tags of the person. Null: none.';

COMMENT ON TABLE  here          IS 'Recent visitors of a site. An instance writes a row every few seconds, which is deleted after five minutes.';
COMMENT ON COLUMN here.site_id  IS 'The site.';
COMMENT ON COLUMN here.number   IS 'Distinguishes the rows of a site.';
COMMENT ON COLUMN here.came_at  IS 'Time when the row was written, at most some seconds after the visits.';
COMMENT ON COLUMN here.visitors IS 'The visitors, as in visits.ip, each once.';

COMMENT ON TABLE  tags        IS 'Tags of visits and people: names and values.';
COMMENT ON COLUMN tags.id     IS 'Number of the tag in other tables.';
COMMENT ON COLUMN tags.app_id IS 'The app.';
COMMENT ON COLUMN tags.name   IS 'source, campaign, country, language, device, system, browser, hour, or one of the app''s own names.';
COMMENT ON COLUMN tags.value  IS 'The value. (other): all values that are not stored separately.';

COMMENT ON TABLE  tag_days           IS 'Numbers of visitors of each page and site by tag and day. Sites have all tags, pages only source and campaign. Updated about a second after other numbers.';
COMMENT ON COLUMN tag_days.page_id   IS 'The page or site: pages.id.';
COMMENT ON COLUMN tag_days.pv        IS 'Visitors whose first visit of the day had the tag.';
COMMENT ON COLUMN tag_days.newcomers IS 'Visitors whose first visit ever to the page or site was on this day and had the tag.';
COMMENT ON COLUMN tag_days.day_id    IS 'The day, like 20190629.';
COMMENT ON COLUMN tag_days.tag_id    IS 'The tag.';

COMMENT ON TABLE  tag_news          IS 'Tags of visits in recent batches, in a compact format, until they are added to tag_days about a second later.';
COMMENT ON COLUMN tag_news.verdicts IS 'One byte for each pair of visitor and page or site in the batch. 0: the pair was counted before on that day. 1: first visit of the day. 2: first visit ever. Null: all are 2.';
COMMENT ON COLUMN tag_news.tags     IS 'For each pair with tags, as zigzag varints: its index among the pairs from 0, the page or site, the day minus the previous pair''s day, the number of tags, the tags.';

-- Batches, sources and the inbox

COMMENT ON TABLE  batches                IS 'Ids of batches of visits (one transaction each) that were committed or abandoned. Kept for some minutes.';
COMMENT ON COLUMN batches.id             IS 'Id that the instance gave the batch.';
COMMENT ON COLUMN batches.turn           IS 'Partition of the row, 0 or 1. An abandoned batch has a row in both partitions.';
COMMENT ON COLUMN batches.schema_version IS 'Version of the rows that the instance writes for a batch. A later schema can refuse an old version.';
COMMENT ON COLUMN batches.abandoned      IS 'Whether the batch was abandoned: it was not committed, and cannot be committed any more.';

COMMENT ON TABLE  positions           IS 'How far each source of visits was counted.';
COMMENT ON COLUMN positions.app_id    IS 'App for which the visits count.';
COMMENT ON COLUMN positions.source    IS 'Source of the visits. For calls of POST /visits with an Idempotency-Key: "calls of key 7", by keys.id, or "calls" without a key. For imports: "logs". For a queue: its kind, cluster and name, and an id if a later queue can have the same name.';
COMMENT ON COLUMN positions.part      IS 'Part of the source. For a call: the Idempotency-Key, followed by content if the caller had no key. For an import: the run. For a Kafka topic: the partition.';
COMMENT ON COLUMN positions.next      IS 'End of the counted part. For a call: the number of its items. For an import: the number of lines read. For a queue: the offset or sequence of the next message.';
COMMENT ON COLUMN positions.content   IS 'SHA-256 of a call''s body. Null for other sources.';
COMMENT ON COLUMN positions.uncounted IS 'For a call: a bit for each item before next, which is 1 if the item was invalid or skipped. Null for other sources.';
COMMENT ON COLUMN positions.used_at   IS 'Time when a call, an import or the reader of a queue last started at this position.';

COMMENT ON TABLE  refused            IS 'Messages of queues that could not be counted: the last 1,000 of each part, for 7 days.';
COMMENT ON COLUMN refused.app_id     IS 'The app.';
COMMENT ON COLUMN refused.source     IS 'The queue, as in positions.';
COMMENT ON COLUMN refused.part       IS 'Part of the queue, as in positions.';
COMMENT ON COLUMN refused.position   IS 'Place of the message in the queue. If the row is for messages that the queue had already deleted: the place of the first one.';
COMMENT ON COLUMN refused.refused_at IS 'Time when the message was skipped.';
COMMENT ON COLUMN refused.reason     IS 'Reason why the message could not be counted.';
COMMENT ON COLUMN refused.beginning  IS 'Beginning of the message''s text. Only names of fields, URIs without queries, and times are kept.';

COMMENT ON TABLE  visit_ids        IS 'Ids that callers gave to counted visits, kept for some days.';
COMMENT ON COLUMN visit_ids.app_id IS 'App for which the visit was counted.';
COMMENT ON COLUMN visit_ids.day_id IS 'Day on which the visit arrived, like 20190629, in UTC.';
COMMENT ON COLUMN visit_ids.id     IS 'The id that the caller gave to the visit.';

COMMENT ON TABLE  inbox             IS 'Accepted visits that are not counted yet. A row has the visits of one app that arrived at the same moment.';
COMMENT ON COLUMN inbox.number      IS 'Rows are counted in this order. A row can be committed after a row with a larger number.';
COMMENT ON COLUMN inbox.received_at IS 'Time of arrival.';
COMMENT ON COLUMN inbox.app_id      IS 'The app.';
COMMENT ON COLUMN inbox.visits      IS 'Number of visits. The arrays have one element for each visit, except uris and tag_sets.';
COMMENT ON COLUMN inbox.counted     IS 'Number of visits, from the first, that were counted or dropped. After the last one the row is deleted.';
COMMENT ON COLUMN inbox.ipv6_prefix IS 'apps.ipv6_prefix at the time of arrival.';
COMMENT ON COLUMN inbox.tz          IS 'apps.tz at the time of arrival.';
COMMENT ON COLUMN inbox.visitor     IS 'apps.visitor at the time of arrival.';
COMMENT ON COLUMN inbox.uris        IS 'The pages, each once, as URIs. New pages get their numbers when they are counted.';
COMMENT ON COLUMN inbox.pages       IS 'The page of each visit, as a place in uris from 1.';
COMMENT ON COLUMN inbox.days        IS 'The day of each visit, like 20190629: the day of arrival, unless the caller gave an earlier time.';
COMMENT ON COLUMN inbox.new_pages   IS 'The app''s limit of new pages a day, for each visit. 0: no limit.';
COMMENT ON COLUMN inbox.ips         IS 'The visitors, hashed if the app hashes them.';
COMMENT ON COLUMN inbox.ids         IS 'Ids from callers, as in visit_ids. '''': none. Null: no visit has one.';
COMMENT ON COLUMN inbox.tag_sets    IS 'Different sets of tags, each once: a line for each tag, with control character 31 between name and value.';
COMMENT ON COLUMN inbox.tag_places  IS 'The tags of each visit, as a place in tag_sets from 1. 0: no tags. Null: no visit has tags.';

-- History from other programs

COMMENT ON TABLE  history_imports             IS 'Imports of numbers that other programs counted. An import without days has no row.';
COMMENT ON COLUMN history_imports.app_id      IS 'The app.';
COMMENT ON COLUMN history_imports.id          IS 'Number of the import.';
COMMENT ON COLUMN history_imports.imported_at IS 'Time of the import.';
COMMENT ON COLUMN history_imports.source      IS 'The other program: goatcounter, umami, plausible, matomo or ga4, or csv if unknown.';
COMMENT ON COLUMN history_imports.files       IS 'Names of the files.';

COMMENT ON TABLE  history_days           IS 'Days of sites in imports of history. A day is not shown if Footfall counted the site on it.';
COMMENT ON COLUMN history_days.id        IS 'Number of the row. The table history refers to it as day.';
COMMENT ON COLUMN history_days.app_id    IS 'The app.';
COMMENT ON COLUMN history_days.import_id IS 'The import.';
COMMENT ON COLUMN history_days.day_id    IS 'The day, like 20190629, in the time zone of the other program.';
COMMENT ON COLUMN history_days.site      IS 'The site, as in pages.uri. It need not have a row in pages.';
COMMENT ON COLUMN history_days.in_totals IS 'Whether offsets contain the numbers of this day (history import --offsets). They do not contain a day on which Footfall counted the site itself.';

COMMENT ON TABLE  history              IS 'Numbers of a page or site on a day, as another program counted them. Null: the program does not report the number.';
COMMENT ON COLUMN history.day          IS 'The day and its site: history_days.id.';
COMMENT ON COLUMN history.page_views   IS 'Page views. This number is called hot in the table days.';
COMMENT ON COLUMN history.visits       IS 'Sessions. Footfall has no such number.';
COMMENT ON COLUMN history.visitors     IS 'Visitors of the day, as the other program identifies them. This number is called pv in the table days.';
COMMENT ON COLUMN history.new_visitors IS 'New visitors, as the other program identifies them.';
COMMENT ON COLUMN history.uri          IS 'The page or site, as in pages.uri. It need not have a row in pages.';
COMMENT ON COLUMN history.uv           IS 'Visitors without an earlier day in the import. The uv of the offset is the sum of these numbers. Null: the import has no ids of visitors.';

-- Access logs

COMMENT ON TABLE  log_hours          IS 'Hours of access logs from which lines were counted. The arrays have one element for each server. A batch that counts lines locks the rows of their hours.';
COMMENT ON COLUMN log_hours.app_id   IS 'The app.';
COMMENT ON COLUMN log_hours.hour     IS 'The hour of the lines, as hours since 1970 in the local time that the lines contain.';
COMMENT ON COLUMN log_hours.servers  IS 'Servers that wrote the lines, as named with --server. Empty text: no name was given.';
COMMENT ON COLUMN log_hours.versions IS 'Version of the server''s counted lines. It rises by one for each counted line, and when lines are forgotten. It never falls.';
COMMENT ON COLUMN log_hours.gone     IS 'Version up to which counted lines were forgotten. counted_lines contains the lines after it: versions - gone lines.';
COMMENT ON COLUMN log_hours.latest   IS 'Latest time of a counted line.';

COMMENT ON TABLE  counted_lines        IS 'Counted lines of access logs, in blocks.';
COMMENT ON COLUMN counted_lines.app_id IS 'The app.';
COMMENT ON COLUMN counted_lines.hour   IS 'The hour, as in log_hours.';
COMMENT ON COLUMN counted_lines.server IS 'Server that wrote the lines. Empty: no name was given.';
COMMENT ON COLUMN counted_lines.first  IS 'Version of the server''s counted lines (log_hours.versions) before the first line of the block was counted.';
COMMENT ON COLUMN counted_lines.hashes IS 'Keyed hashes of the lines, 8 bytes each, in the order of counting. If a line was counted twice, its hash is stored twice.';

COMMENT ON TABLE  read_logs         IS 'Log files that imports have read. A file that has not changed since is not read again.';
COMMENT ON COLUMN read_logs.app_id  IS 'The app.';
COMMENT ON COLUMN read_logs.options IS 'Hash of the server, the site, the rules and the settings of the app that decide which lines count.';
COMMENT ON COLUMN read_logs.inode   IS 'Device and inode of the file.';
COMMENT ON COLUMN read_logs.run     IS 'Import that reads or last read the file.';
COMMENT ON COLUMN read_logs.state   IS 'Size and time of the last change (ctime) of the file when all of it was counted. Empty: a part of it was not counted.';
COMMENT ON COLUMN read_logs.place   IS 'Number of bytes, from the beginning, that were read and counted. 0: unknown, or the file is compressed.';
COMMENT ON COLUMN read_logs.sum     IS 'Keyed XXH64 of the bytes before place.';
COMMENT ON COLUMN read_logs.start   IS 'Byte from which the file is read again if it grows. All lines before this byte are more than ten minutes older than the newest line.';
COMMENT ON COLUMN read_logs.lines   IS 'Number of lines before start.';
COMMENT ON COLUMN read_logs.read_at IS 'Time when the import started to read the file.';

-- Access logs of 0.2 and 0.1.0

COMMENT ON TABLE  logs              IS 'Access logs that versions 0.2 and 0.1.0 imported, and how much of each was counted. This version adds no rows.';
COMMENT ON COLUMN logs.id           IS 'Number of the log.';
COMMENT ON COLUMN logs.app_id       IS 'The app.';
COMMENT ON COLUMN logs.claimed      IS 'Number of bytes at the last import, uncompressed and in whole lines.';
COMMENT ON COLUMN logs.lines        IS 'Number of lines that were counted or skipped.';
COMMENT ON COLUMN logs.begun_at     IS 'Time of the first import.';
COMMENT ON COLUMN logs.used_at      IS 'Time of the last import.';
COMMENT ON COLUMN logs.last_hour    IS 'Latest hour of the lines, since 1970. Only 0.1.0 wrote it.';
COMMENT ON COLUMN logs.hash         IS 'Keyed hash of the bytes at the last import. If 0.1.0 wrote it: their SHA-256.';
COMMENT ON COLUMN logs.file         IS 'File that last contained the log.';
COMMENT ON COLUMN logs.rules        IS 'Flags of the command import that decide which lines count. Empty: the defaults.';
COMMENT ON COLUMN logs.skips        IS 'Lines of this log that 0.1.0 found in other logs, as pairs: the first line of a range, from 0, and the first line after the range.';
COMMENT ON COLUMN logs.counted      IS 'Number of uncompressed bytes that were counted. Null: the log is from 0.1.0, and positions has the number.';
COMMENT ON COLUMN logs.counted_hash IS 'Keyed hash of the counted bytes, which identifies the log. Null: unknown, for a log that 0.1.0 counted in part.';
COMMENT ON COLUMN logs.beginning    IS 'Keyed hash of the first line that is not a header. Null: unknown.';
COMMENT ON COLUMN logs.look         IS 'Number that rises when a file with different bytes after the counted ones replaces the log.';
COMMENT ON COLUMN logs.server       IS 'Server that wrote the log. Empty: no name was given.';
COMMENT ON COLUMN logs.inode        IS 'Device and inode of the last file. Empty: standard input.';
COMMENT ON COLUMN logs.state        IS 'Size and modification time of the last file when it had no bytes after claimed. Empty: it had more, or had just changed.';
COMMENT ON COLUMN logs.told         IS 'Decision of the operator. another: this is a separate log, even if it shares lines with other logs. counted: each of its files continues after the counted lines. Empty: no decision.';
COMMENT ON COLUMN logs.after        IS 'Lines from before this second are skipped, and those lines of this second that are in after_lines. Null: no line is skipped for its time.';
COMMENT ON COLUMN logs.after_lines  IS 'Lines of the second in the column after that another log had counted, as keyed hashes of 8 bytes. Other lines of that second are not skipped.';
COMMENT ON COLUMN logs.last_at      IS 'Latest time of a counted or skipped line. Null: no line had a time.';
COMMENT ON COLUMN logs.tail         IS 'The last counted lines in order, 12 bytes each: a keyed hash, and the seconds from the line''s time to last_at.';

COMMENT ON TABLE  log_samples        IS 'Samples of each log''s lines in each hour, by which version 0.2 compared logs. This version adds no rows.';
COMMENT ON COLUMN log_samples.app_id IS 'The app.';
COMMENT ON COLUMN log_samples.log_id IS 'The log.';
COMMENT ON COLUMN log_samples.hour   IS 'The hour of the lines, as hours since 1970 in the local time that the lines contain.';
COMMENT ON COLUMN log_samples.sample IS 'First 8 bytes: a hash. All lines with smaller hashes are in the sample. Then up to 256 different lines in order of hash, 20 bytes each: keyed hash, first byte in the log, number of such lines in this hour.';

COMMENT ON TABLE  log_lines        IS 'Hashes of the lines of each log, by which 0.1.0 found the same lines in other files. This version adds no rows.';
COMMENT ON COLUMN log_lines.app_id IS 'The app.';
COMMENT ON COLUMN log_lines.log_id IS 'The log.';
COMMENT ON COLUMN log_lines.line   IS 'Number of the first line in hashes, from 0.';
COMMENT ON COLUMN log_lines.hour   IS 'The hour of the lines, as hours since 1970 in the local time that the lines contain.';
COMMENT ON COLUMN log_lines.hashes IS 'XXH64 of each line, 8 bytes each, the highest byte first.';
