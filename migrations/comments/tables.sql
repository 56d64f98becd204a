-- Comments of all tables and columns, for readers of \dt+ and \d+. A statement is one line: Footfall reads this file line by line
-- and runs the statements whose comment in the database differs.

-- Schema

COMMENT ON TABLE  goose_db_version            IS 'The steps of migrations/ that were applied. Written by goose.';
COMMENT ON COLUMN goose_db_version.id         IS 'Row number.';
COMMENT ON COLUMN goose_db_version.version_id IS 'Number of the step. 0: the empty schema.';
COMMENT ON COLUMN goose_db_version.is_applied IS 'Always true: taking a step back deletes its row.';
COMMENT ON COLUMN goose_db_version.tstamp     IS 'Time when the step was applied.';

COMMENT ON TABLE  schema_files      IS 'The files of migrations/ that made this database. A Footfall with different files detects it here.';
COMMENT ON COLUMN schema_files.name IS 'A step, like 00001_schema.sql, or "functions": all files of functions/, report/ and comments/ together.';
COMMENT ON COLUMN schema_files.hash IS 'SHA-256 of the file. For functions: a number that rises with each version, then the SHA-256.';

COMMENT ON TABLE  schema_objects      IS 'Functions and views that the files of functions/ and report/ made. They are dropped before these files run again. Other objects stay.';
COMMENT ON COLUMN schema_objects.kind IS 'FUNCTION or VIEW.';
COMMENT ON COLUMN schema_objects.name IS 'Name as in an SQL statement. For a function: with the types of its arguments.';

COMMENT ON TABLE  epochs       IS 'Counters by which running instances notice changes, and the state of tasks that one instance does for all. No value ever falls.';
COMMENT ON COLUMN epochs.name  IS 'apps: rows of apps, keys, shares or offsets changed. erasures: visitors or pages were deleted or merged, or an app got its first people. imports: an import wrote visitors. offsets: rows of offsets changed. retention: the daily task ran. people: a new period of people began. standby: the requirement of a synchronous standby changed.';
COMMENT ON COLUMN epochs.value IS 'apps, erasures, imports, offsets: number of changes. retention: the last day of the daily task, like 20190629, in the time zone where days begin last. people: the current period of 35 days, counted since 1970. standby: odd while a synchronous standby is required, 0 until it is first decided.';

-- Apps and access

COMMENT ON TABLE  apps               IS 'Apps and their settings. Every visit belongs to one app.';
COMMENT ON COLUMN apps.id            IS 'Number of the app in all other tables.';
COMMENT ON COLUMN apps.name          IS 'Name of the app, which callers pass as app=…';
COMMENT ON COLUMN apps.tz            IS 'IANA time zone of the app''s days. Fixed after the first visit.';
COMMENT ON COLUMN apps.ipv6_prefix   IS 'IPv6 addresses that share this many leading bits are one visitor. Fixed after the first visit.';
COMMENT ON COLUMN apps.access        IS 'Who can count visits. open: everyone, and the ip or visitor in a request is trusted. sites: everyone, for the listed sites, but ip or visitor needs a key. key: as sites, and each visit needs a key.';
COMMENT ON COLUMN apps.sites         IS 'Sites that the app counts: host, host:port, or *.host for all subdomains. Empty if access is open: every site.';
COMMENT ON COLUMN apps.keep_query    IS 'Query parameters that distinguish pages, in the order in which page URIs contain them.';
COMMENT ON COLUMN apps.created_at    IS 'Time when the app was added.';
COMMENT ON COLUMN apps.visitor       IS 'What identifies a visitor. address: the IP address. id: an id from the caller. hashed: a keyed hash of the address. browser: a keyed hash of the address and the names of browser and system. daily: as hashed, with a new key each day. After the first visit, only address can still become hashed.';
COMMENT ON COLUMN apps.secret_id     IS 'Identifies the secret that keys the hashes of visitors, without revealing it. Null: addresses are stored.';
COMMENT ON COLUMN apps.respect_dnt   IS 'Visits are not counted if the browser asks not to be tracked (DNT, Sec-GPC).';
COMMENT ON COLUMN apps.bots          IS 'count or skip: whether crawlers are counted. Null: they are skipped if the visit is for the caller''s own address and access is not open.';
COMMENT ON COLUMN apps.ignore        IS 'Visits that are not counted: networks, ids of visitors, and referring hosts (from:…).';
COMMENT ON COLUMN apps.max_requests  IS 'Requests a minute from one address (IPv6: from one /64). 0: no limit. Null: the default of the service.';
COMMENT ON COLUMN apps.max_new_pages IS 'New pages and sites a day. Visits to more pages count for the site''s page (other). 0: no limit. Null: the default of the service.';
COMMENT ON COLUMN apps.deleted_at    IS 'Time since when the app is being deleted. Nothing is counted for it any more.';
COMMENT ON COLUMN apps.retain_days   IS 'Days for which rows of visits are kept. 0: for ever. Sums are always kept.';
COMMENT ON COLUMN apps.forget_days   IS 'A site forgets a visitor after this many days without a visit. A later visit counts as a new visitor. 0: never.';
COMMENT ON COLUMN apps.public_counts IS 'Numbers that callers without a key can read. off: none. answers: those of sites and pages, in responses of the API. read: also badges. count: also badges that count visits. Never numbers of events.';
COMMENT ON COLUMN apps.tags          IS 'Names of the tags that are counted: built-in ones, which always include hour, and the app''s own.';
COMMENT ON COLUMN apps.log_key       IS 'Random key for the hashes of access log lines, if visitors are addresses. Null: no log was imported, or the secret keys these hashes.';
COMMENT ON COLUMN apps.filters       IS 'Rows of visits store tags, so that reports can be filtered.';
COMMENT ON COLUMN apps.goals         IS 'Goals, as filter conditions: event:signup or page:/thanks.';
COMMENT ON COLUMN apps.held_until    IS 'Nothing is counted for the app until this time, or until this is null, because its addresses are being hashed.';
COMMENT ON COLUMN apps.hashed_from   IS 'Sketches of earlier days were made from addresses, those from this day on from hashes. 0: all sketches are of one kind.';
COMMENT ON COLUMN apps.hashed_as     IS 'App number in the hashes of visitors, if the app was loaded from an export. Null: id.';
COMMENT ON COLUMN apps.titles        IS 'Titles of pages are stored.';
COMMENT ON COLUMN apps.cell          IS 'Cell that has the app. This row keeps only its name and the rights of accounts. Null: the app is in this database.';
COMMENT ON COLUMN apps.cell_began    IS 'Time when the app in the cell was added, which distinguishes it from a later app with its name. Null: not seen there yet.';
COMMENT ON COLUMN apps.moving_to     IS 'Cell to which the app is being moved. Nothing is counted for it here any more. Null: it is not being moved.';
COMMENT ON COLUMN apps.public_top    IS 'Callers without a key can list the most visited pages of its sites, unless public_counts is off.';
COMMENT ON COLUMN apps.public_events IS 'Events whose numbers callers without a key can read, unless public_counts is off: names like signup, or like/* for all with such a path.';

COMMENT ON TABLE  keys            IS 'Keys of apps for callers of the API. The key itself is not stored.';
COMMENT ON COLUMN keys.id         IS 'Number of the key.';
COMMENT ON COLUMN keys.app_id     IS 'App to which the key gives access.';
COMMENT ON COLUMN keys.created_at IS 'Time when the key was created.';
COMMENT ON COLUMN keys.used_at    IS 'Time of the last use, accurate to about a minute.';
COMMENT ON COLUMN keys.revoked_at IS 'Time when the key was revoked. Null: it is valid.';
COMMENT ON COLUMN keys.name       IS 'The first characters of the key, which identify it in lists.';
COMMENT ON COLUMN keys.hash       IS 'SHA-256 of the whole key. A key has 256 random bits, so a slower hash is not needed.';
COMMENT ON COLUMN keys.scopes     IS 'count: count visits. assert: also set the visitor of a visit. read: look up a visitor, and read reports. admin: change the app.';

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
COMMENT ON COLUMN shares.revoked_at IS 'Time when the link was revoked. Null: it was not.';
COMMENT ON COLUMN shares.name       IS 'The first random characters of the link, which identify it in lists.';
COMMENT ON COLUMN shares.hash       IS 'SHA-256 of the random part of the link, which has 256 bits.';
COMMENT ON COLUMN shares.site       IS 'The only site that the link shows. Null: the whole app.';

COMMENT ON TABLE  accounts            IS 'Accounts of people who use the dashboard.';
COMMENT ON COLUMN accounts.id         IS 'Number of the account.';
COMMENT ON COLUMN accounts.owner      IS 'The account can see every app and change everything.';
COMMENT ON COLUMN accounts.created_at IS 'Time when the account was created.';
COMMENT ON COLUMN accounts.name       IS 'Name for signing in. Null: the person chooses it with the account''s link.';
COMMENT ON COLUMN accounts.folded     IS 'The name in the form that is compared: without case, and with similar-looking characters made equal.';
COMMENT ON COLUMN accounts.password   IS 'argon2id of the password, with parameters and salt. Null: the account signs in through a proxy''s header, or its link was not used yet.';
COMMENT ON COLUMN accounts.language   IS 'Language of the pages, as a BCP 47 tag. Null: the language of the browser.';

COMMENT ON TABLE  account_apps            IS 'Apps that an account can see. Owners can see all apps and need no rows.';
COMMENT ON COLUMN account_apps.account_id IS 'The account.';
COMMENT ON COLUMN account_apps.app_id     IS 'The app.';
COMMENT ON COLUMN account_apps.may_change IS 'The account can also change the app.';

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
COMMENT ON COLUMN changes.app    IS 'Name of the app, which may be deleted since. Null: the change is not about one app.';
COMMENT ON COLUMN changes.what   IS 'Object of the change: the name of a setting, or key, link, note, webhook, offset, page, visitor, account …';
COMMENT ON COLUMN changes.was    IS 'Value before the change. Empty: none.';
COMMENT ON COLUMN changes.is_now IS 'Value after the change. Empty: none.';

COMMENT ON TABLE  notes        IS 'Notes about days, shown next to the numbers: a release, a campaign, an outage.';
COMMENT ON COLUMN notes.id     IS 'Number of the note.';
COMMENT ON COLUMN notes.app_id IS 'The app.';
COMMENT ON COLUMN notes.day_id IS 'Day in the app''s time zone, like 20190629.';
COMMENT ON COLUMN notes.site   IS 'Site that the note is about. Null: the whole app.';
COMMENT ON COLUMN notes.text   IS 'Text of the note.';

COMMENT ON TABLE  day_keys        IS 'Random keys of the current days, for apps whose visitor setting is daily.';
COMMENT ON COLUMN day_keys.day_id IS 'The day, like 20190629.';
COMMENT ON COLUMN day_keys.key    IS 'Key for the hashes of addresses. It is useless without the secret, which is not in this database.';

COMMENT ON TABLE  webhooks         IS 'URLs that are called when a page or site reaches visitor 1, 2, 5, 10, 20, 50 …';
COMMENT ON COLUMN webhooks.id      IS 'Number of the webhook. With the visitor''s number it is the id of a call.';
COMMENT ON COLUMN webhooks.app_id  IS 'The app.';
COMMENT ON COLUMN webhooks.seen    IS 'Number of counted visitors, without offsets, that were checked for round numbers. Calls for their round numbers were sent or are in waiting.';
COMMENT ON COLUMN webhooks.since   IS 'Time since when the first call in waiting has been due.';
COMMENT ON COLUMN webhooks.try_at  IS 'Time of the next attempt to send that call.';
COMMENT ON COLUMN webhooks.private IS 'The URL may lead to a private, loopback or link-local address.';
COMMENT ON COLUMN webhooks.uri     IS 'The target, as in pages. It need not have a row there.';
COMMENT ON COLUMN webhooks.key     IS 'page_key(uri), as in pages.';
COMMENT ON COLUMN webhooks.url     IS 'URL that is called.';
COMMENT ON COLUMN webhooks.waiting IS 'Bodies of the calls that the receiver has not accepted yet, in order.';
COMMENT ON COLUMN webhooks.answers IS 'The receiver''s responses to the last calls, or the errors, each with its time. The latest is first.';
COMMENT ON COLUMN webhooks.salt    IS 'Makes the signing key differ from that of a webhook with this number in another database with the same secret. Null: a webhook of 0.1.0, whose signing key has no salt.';

-- Targets and their sums

COMMENT ON TABLE  pages            IS 'Targets of visits. A row is a page, or a site if site_id is null.';
COMMENT ON COLUMN pages.id         IS 'Number of the target, which is page_id in counters, visitors and visits.';
COMMENT ON COLUMN pages.site_id    IS 'Site of the page. Null: the row is a site.';
COMMENT ON COLUMN pages.app_id     IS 'App that counts the target. The same uri in two apps is two targets.';
COMMENT ON COLUMN pages.created_at IS 'Time when it was first counted.';
COMMENT ON COLUMN pages.uri        IS 'Canonical URI without a scheme: example.com for a site, example.com/home for a page.';
COMMENT ON COLUMN pages.key        IS 'page_key(uri), for the unique index.';

COMMENT ON TABLE  page_tallies                IS 'New pages, sites and tags of each app on the last day that had any, for the daily limits.';
COMMENT ON COLUMN page_tallies.app_id         IS 'The app.';
COMMENT ON COLUMN page_tallies.day_id         IS 'Last day with a new page or tag, like 20190629.';
COMMENT ON COLUMN page_tallies.today          IS 'New pages and sites on that day, including those that were deleted since.';
COMMENT ON COLUMN page_tallies.tags_today     IS 'New sources and campaigns on that day, whose values any visitor can invent.';
COMMENT ON COLUMN page_tallies.own_tags_today IS 'New tags with the app''s own names on that day, of visits and people.';

COMMENT ON TABLE  titles         IS 'Titles of pages, as several visitors'' browsers or a caller with a key reported them.';
COMMENT ON COLUMN titles.page_id IS 'The page.';
COMMENT ON COLUMN titles.title   IS 'The title: one line without control characters.';
COMMENT ON COLUMN titles.told_at IS 'Time since when the page has this title. It stays for at least an hour.';

COMMENT ON TABLE  counters         IS 'Sums of each target over all days. Transactions that count for a target lock its row.';
COMMENT ON COLUMN counters.page_id IS 'The target.';
COMMENT ON COLUMN counters.hot     IS 'Visits.';
COMMENT ON COLUMN counters.pv      IS 'First visits of a visitor on a day: the number of (visitor, day) pairs.';
COMMENT ON COLUMN counters.uv      IS 'Visitors. This is also the last rank that was given.';

COMMENT ON TABLE  offsets             IS 'Numbers from elsewhere that are added to the all-time totals of a target, but to no day and no other table.';
COMMENT ON COLUMN offsets.app_id      IS 'The app.';
COMMENT ON COLUMN offsets.hot         IS 'Visits.';
COMMENT ON COLUMN offsets.pv          IS 'Visitors of each day, added up.';
COMMENT ON COLUMN offsets.uv          IS 'Visitors. Also added to ranks.';
COMMENT ON COLUMN offsets.uri         IS 'The target, as in pages. It need not have a row there. Numbers of a site are its own, not the sum of its pages.';
COMMENT ON COLUMN offsets.key         IS 'page_key(uri), as in pages.';
COMMENT ON COLUMN offsets.told        IS 'Earlier values of uv, as pairs: the number of counted visitors when uv changed, and uv until then. If an offset is removed while its target has visitors, the row stays with its other numbers 0.';
COMMENT ON COLUMN offsets.history_hot IS 'Part of hot that is from history. The rest was set by hand, or by 0.2.0.';
COMMENT ON COLUMN offsets.history_pv  IS 'Part of pv that is from history.';
COMMENT ON COLUMN offsets.history_uv  IS 'Part of uv that is from history.';
COMMENT ON COLUMN offsets.by_hand     IS 'The rest was set by hand with 0.3.0 or later. False: 0.2.0 may have set it for an import.';

COMMENT ON TABLE  days              IS 'Sums of each target on each day. Over all days they add up to those in counters.';
COMMENT ON COLUMN days.page_id      IS 'The target.';
COMMENT ON COLUMN days.site_id      IS 'Site of the page. Null: the target is a site.';
COMMENT ON COLUMN days.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN days.hot          IS 'Visits.';
COMMENT ON COLUMN days.pv           IS 'Visitors of the day.';
COMMENT ON COLUMN days.new_visitors IS 'New visitors. In the sums of deleted pages it is 0, because they can no longer be distinguished.';

COMMENT ON TABLE  closed_days           IS 'Days that have ended in every time zone and have sketches.';
COMMENT ON COLUMN closed_days.day_id    IS 'The day, like 20190629.';
COMMENT ON COLUMN closed_days.closed_at IS 'Time when the sketches were made.';

COMMENT ON TABLE  sketches         IS 'HyperLogLog sketches of the visitors of each target on each closed day. Standard error 1.625 %.';
COMMENT ON COLUMN sketches.page_id IS 'The target.';
COMMENT ON COLUMN sketches.day_id  IS 'The day, like 20190629.';
COMMENT ON COLUMN sketches.entries IS 'Registers that are not 0, each as register * 64 + value, in order.';

COMMENT ON TABLE  tops          IS 'The first 1,000 pages of each app, and of each of its sites, on each closed day.';
COMMENT ON COLUMN tops.app_id   IS 'The app.';
COMMENT ON COLUMN tops.site_id  IS 'The site. 0: all sites of the app.';
COMMENT ON COLUMN tops.day_id   IS 'The day, like 20190629.';
COMMENT ON COLUMN tops.by       IS 'Number by which the pages are ordered: pv, uv or hot.';
COMMENT ON COLUMN tops.page_ids IS 'The pages, the one with the highest number first.';
COMMENT ON COLUMN tops.numbers  IS 'The number of each page on that day.';

-- Visitors and visits

COMMENT ON TABLE  visitors           IS 'Visitors of each target, until they are erased or forgotten. The rows prove uv and every rank.';
COMMENT ON COLUMN visitors.page_id   IS 'The target.';
COMMENT ON COLUMN visitors.rank      IS 'Place of the visitor in the order of first visits to the target: 1, 2, 3 …';
COMMENT ON COLUMN visitors.first_day IS 'The earliest counted day, like 20190629.';
COMMENT ON COLUMN visitors.last_day  IS 'The latest counted day, like 20190629.';
COMMENT ON COLUMN visitors.ip        IS 'The visitor: an address (IPv6: the first of its network), or a hash or id in the form of one.';

COMMENT ON TABLE  visits              IS 'Days on which a visitor visited a target. The rows prove pv. Each day is a partition.';
COMMENT ON COLUMN visits.page_id      IS 'The target.';
COMMENT ON COLUMN visits.day_id       IS 'Day in the app''s time zone, like 20190629.';
COMMENT ON COLUMN visits.previous_day IS 'The visitor''s last earlier day at this target. 0: this is the first day, or it is unknown (in sums of deleted pages).';
COMMENT ON COLUMN visits.ip           IS 'The visitor, as in visitors.';
COMMENT ON COLUMN visits.tags         IS 'For a site: the tags of the visitor''s first counted visit on that day. {}: no tags. Null: not recorded, as for pages, for apps without filters, and by instances before 0.2.0.';

COMMENT ON TABLE  open_returns              IS 'Visitors of a target on a day that is not closed yet, by the last earlier day on which they visited it.';
COMMENT ON COLUMN open_returns.page_id      IS 'The target.';
COMMENT ON COLUMN open_returns.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN open_returns.previous_day IS 'The last earlier day on which these visitors visited the target.';
COMMENT ON COLUMN open_returns.visitors     IS 'Number of visitors.';

COMMENT ON TABLE  packed_returns               IS 'Visitors of a target on a closed day, by the last earlier day on which they visited it, packed. The view returns unpacks it.';
COMMENT ON COLUMN packed_returns.page_id       IS 'The target.';
COMMENT ON COLUMN packed_returns.day_id        IS 'The day, like 20190629.';
COMMENT ON COLUMN packed_returns.previous_days IS 'Bit k, from 1, is 1 if the last earlier visit of some visitors was k days before. The last bit is 1.';
COMMENT ON COLUMN packed_returns.visitors      IS 'A number for each of these 1 bits, all of the same width: visitors whose last earlier visit was so many days before, or more.';

COMMENT ON TABLE  erased_visitors         IS 'Ranks of erased or forgotten visitors, 256 ranks a row. The uv of a target is its rows in visitors plus its rows in the view erased_ranks.';
COMMENT ON COLUMN erased_visitors.page_id IS 'The target.';
COMMENT ON COLUMN erased_visitors.part    IS 'The row covers ranks 256 * part + 1 to 256 * part + 256.';
COMMENT ON COLUMN erased_visitors.place   IS 'If one rank is erased: its place in the row, so the rank is 256 * part + 1 + place. It is never given again.';
COMMENT ON COLUMN erased_visitors.places  IS 'If several ranks are erased: bit n, from 0, is 1 if rank 256 * part + 1 + n is erased.';

COMMENT ON TABLE  erased_visits              IS 'Days of erased or forgotten visitors. The pv of a target is its rows in visits plus the sum of visitors here, as long as all visits are kept.';
COMMENT ON COLUMN erased_visits.page_id      IS 'The target.';
COMMENT ON COLUMN erased_visits.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN erased_visits.previous_day IS 'The last earlier day on which these visitors visited the target. 0: as in visits.';
COMMENT ON COLUMN erased_visits.visitors     IS 'Number of visitors.';

COMMENT ON TABLE  visits_kept             IS 'First day whose visits are kept, for each app. An app without a row keeps all visits.';
COMMENT ON COLUMN visits_kept.app_id      IS 'The app.';
COMMENT ON COLUMN visits_kept.from_day    IS 'All visits from this day on have rows. Rows of earlier days are deleted or being deleted.';
COMMENT ON COLUMN visits_kept.gone_before IS 'No row of the app is left from before this day.';

COMMENT ON TABLE  retention_pauses          IS 'Imports of old visits. While an app has a row, none of its visits or visitors are deleted for their age.';
COMMENT ON COLUMN retention_pauses.app_id   IS 'The app.';
COMMENT ON COLUMN retention_pauses.run      IS 'Unique number of the import.';
COMMENT ON COLUMN retention_pauses.from_day IS 'First day from which visits are imported, like 20190629.';
COMMENT ON COLUMN retention_pauses.until    IS 'Time when the pause ends, unless the import makes progress, which extends it.';

COMMENT ON TABLE  people         IS 'Ids of visitors that lead to a person, and persons. Kept for 35 to 70 days after the last use.';
COMMENT ON COLUMN people.app_id  IS 'The app, whose visitor setting is id.';
COMMENT ON COLUMN people.period  IS 'Partition of the row, 0 or 1. people_period() returns the one that is written to.';
COMMENT ON COLUMN people.height  IS 'Upper bound of the steps on the longest way to this id.';
COMMENT ON COLUMN people.id      IS 'The id, as visitors.ip stores it.';
COMMENT ON COLUMN people.person  IS 'Id to which this one leads. Null: it is a person.';
COMMENT ON COLUMN people.tag_ids IS 'Tags of the person. Null: none.';

COMMENT ON TABLE  here          IS 'Recent visitors of a site. An instance writes a row every few seconds, which is deleted after five minutes.';
COMMENT ON COLUMN here.site_id  IS 'The site.';
COMMENT ON COLUMN here.number   IS 'Distinguishes rows.';
COMMENT ON COLUMN here.came_at  IS 'Time when the row was written, at most some seconds after the visits.';
COMMENT ON COLUMN here.visitors IS 'The visitors, as in visits, each once.';

COMMENT ON TABLE  tags        IS 'Tags of visits and people: names and values.';
COMMENT ON COLUMN tags.id     IS 'Number of the tag in other tables.';
COMMENT ON COLUMN tags.app_id IS 'The app.';
COMMENT ON COLUMN tags.name   IS 'source, campaign, country, language, device, system, browser, hour, or one of the app''s own names.';
COMMENT ON COLUMN tags.value  IS 'The value. (other): all values that are not stored separately.';

COMMENT ON TABLE  tag_days           IS 'Visitors of each target by tag and day. Sites have all tags, pages only source and campaign. Updated about a second after other numbers.';
COMMENT ON COLUMN tag_days.page_id   IS 'The target.';
COMMENT ON COLUMN tag_days.pv        IS 'Visitors whose first visit of the day had the tag.';
COMMENT ON COLUMN tag_days.newcomers IS 'Visitors whose first visit ever was such a visit.';
COMMENT ON COLUMN tag_days.day_id    IS 'The day, like 20190629.';
COMMENT ON COLUMN tag_days.tag_id    IS 'The tag.';

COMMENT ON TABLE  tag_news          IS 'Tags of recent batches, packed, until they are added to tag_days about a second later.';
COMMENT ON COLUMN tag_news.verdicts IS 'Result for each pair of target and visitor. 0: counted before on that day. 1: first visit of the day. 2: first visit ever. Null: all are 2.';
COMMENT ON COLUMN tag_news.tags     IS 'For each pair with tags: its place among the pairs from 0, the target, the day minus the previous pair''s day, the number of tags, the tags. Zigzag varints.';

-- Batches, sources and the inbox

COMMENT ON TABLE  batches                IS 'Ids of batches of visits that were committed or abandoned. Kept for some minutes.';
COMMENT ON COLUMN batches.id             IS 'Id that the instance gave the batch.';
COMMENT ON COLUMN batches.turn           IS 'Partition of the row, 0 or 1. An abandoned batch is in both.';
COMMENT ON COLUMN batches.schema_version IS 'Version of the rows that the instance writes.';
COMMENT ON COLUMN batches.abandoned      IS 'The batch was not committed and cannot be committed any more.';

COMMENT ON TABLE  positions           IS 'How far each source of visits was counted.';
COMMENT ON COLUMN positions.app_id    IS 'App for which the visits count.';
COMMENT ON COLUMN positions.source    IS 'Source of the visits. For calls of POST /visits with an Idempotency-Key: "calls of key 7", by keys.id, or "calls" without a key. For imports: "logs". For a queue: its kind, cluster and name, and an id if a later queue can have the same name.';
COMMENT ON COLUMN positions.part      IS 'Part of the source. For a call: the Idempotency-Key, followed by content if the caller had no key. For an import: the run. For a Kafka topic: the partition.';
COMMENT ON COLUMN positions.next      IS 'End of the counted part. For a call: the number of its items. For an import: the number of lines read. For a queue: the offset or sequence of the next message.';
COMMENT ON COLUMN positions.content   IS 'SHA-256 of a call''s body. Null for other sources.';
COMMENT ON COLUMN positions.uncounted IS 'For a call: a bit for each item before next, which is 1 if the item was invalid or skipped. Null for other sources.';
COMMENT ON COLUMN positions.used_at   IS 'Time when reading from this position last started.';

COMMENT ON TABLE  refused            IS 'Messages of queues that could not be counted: the last 1,000 of each part, for 7 days.';
COMMENT ON COLUMN refused.app_id     IS 'The app.';
COMMENT ON COLUMN refused.source     IS 'The queue, as in positions.';
COMMENT ON COLUMN refused.part       IS 'Part of the queue, as in positions.';
COMMENT ON COLUMN refused.position   IS 'Place of the message in the queue. For messages that the queue had already deleted: the first place.';
COMMENT ON COLUMN refused.refused_at IS 'Time when the message was skipped.';
COMMENT ON COLUMN refused.reason     IS 'Reason why it could not be counted.';
COMMENT ON COLUMN refused.beginning  IS 'Beginning of its text. Only names of fields, URIs without queries, and times are kept.';

COMMENT ON TABLE  visit_ids        IS 'Ids that callers gave to counted visits, kept for some days.';
COMMENT ON COLUMN visit_ids.app_id IS 'App for which the visit was counted.';
COMMENT ON COLUMN visit_ids.day_id IS 'Day on which the visit arrived, like 20190629, in UTC.';
COMMENT ON COLUMN visit_ids.id     IS 'The id.';

COMMENT ON TABLE  inbox             IS 'Accepted visits that are not counted yet. A row has the visits of one app that arrived at the same moment.';
COMMENT ON COLUMN inbox.number      IS 'Order of counting. A row with a smaller number may be committed later.';
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
COMMENT ON COLUMN history_days.id        IS 'Number of the row, which is day in history.';
COMMENT ON COLUMN history_days.app_id    IS 'The app.';
COMMENT ON COLUMN history_days.import_id IS 'The import.';
COMMENT ON COLUMN history_days.day_id    IS 'The day, like 20190629, in the time zone of the other program.';
COMMENT ON COLUMN history_days.site      IS 'The site, as in pages. It need not have a row there.';
COMMENT ON COLUMN history_days.in_totals IS 'Offsets contain the numbers of this day, unless its site was counted here on it (history import --offsets).';

COMMENT ON TABLE  history              IS 'Numbers of a page or site on a day, as another program counted them. Null: the program does not report the number.';
COMMENT ON COLUMN history.day          IS 'The day of the site: history_days.id.';
COMMENT ON COLUMN history.page_views   IS 'Page views. Corresponds to hot.';
COMMENT ON COLUMN history.visits       IS 'Sessions. Footfall has no such number.';
COMMENT ON COLUMN history.visitors     IS 'Visitors of the day, as the other program identifies them. Corresponds to pv.';
COMMENT ON COLUMN history.new_visitors IS 'New visitors, as the other program identifies them.';
COMMENT ON COLUMN history.uri          IS 'The target, as in pages. It need not have a row there.';
COMMENT ON COLUMN history.uv           IS 'Visitors without an earlier day in the import. Their sum is uv of the offset. Null: the import has no ids of visitors.';

-- Access logs

COMMENT ON TABLE  log_hours          IS 'Hours of access logs. The arrays have one element for each server. A batch that counts lines locks the rows of their hours.';
COMMENT ON COLUMN log_hours.app_id   IS 'The app.';
COMMENT ON COLUMN log_hours.hour     IS 'The hour of the lines, since 1970, by the clock that they show.';
COMMENT ON COLUMN log_hours.servers  IS 'Servers that wrote the lines, as named with --server. Empty text: no name was given.';
COMMENT ON COLUMN log_hours.versions IS 'Rises by one for each counted line, and when lines are forgotten. It never falls.';
COMMENT ON COLUMN log_hours.gone     IS 'Version up to which lines were forgotten. counted_lines has versions - gone lines.';
COMMENT ON COLUMN log_hours.latest   IS 'Latest time of a counted line.';

COMMENT ON TABLE  counted_lines        IS 'Counted lines of access logs, in blocks.';
COMMENT ON COLUMN counted_lines.app_id IS 'The app.';
COMMENT ON COLUMN counted_lines.hour   IS 'The hour, as in log_hours.';
COMMENT ON COLUMN counted_lines.server IS 'Server that wrote the lines. Empty: no name was given.';
COMMENT ON COLUMN counted_lines.first  IS 'Version of the hour before the first line of the block.';
COMMENT ON COLUMN counted_lines.hashes IS 'Keyed hashes of the lines, 8 bytes each, in the order of counting. A line that was counted twice is in it twice.';

COMMENT ON TABLE  read_logs         IS 'Log files that imports have read. A file that has not changed since is not read again.';
COMMENT ON COLUMN read_logs.app_id  IS 'The app.';
COMMENT ON COLUMN read_logs.options IS 'Hash of the server, the site, the rules and the settings of the app that decide which lines count.';
COMMENT ON COLUMN read_logs.inode   IS 'Device and inode of the file.';
COMMENT ON COLUMN read_logs.run     IS 'Import that reads or last read the file.';
COMMENT ON COLUMN read_logs.state   IS 'Size and time of the last change (ctime) of the file when all of it was counted. Empty: not all of it was.';
COMMENT ON COLUMN read_logs.place   IS 'Number of bytes, from the beginning, that were read and counted. 0: unknown, or the file is compressed.';
COMMENT ON COLUMN read_logs.sum     IS 'Keyed XXH64 of these bytes.';
COMMENT ON COLUMN read_logs.start   IS 'Byte from which the file is read again if it grows. No earlier line is from the last ten minutes.';
COMMENT ON COLUMN read_logs.lines   IS 'Number of lines before start.';
COMMENT ON COLUMN read_logs.read_at IS 'Time when the import started to read the file.';

-- Access logs of 0.2 and 0.1.0

COMMENT ON TABLE  logs              IS 'Access logs that 0.2 and 0.1.0 imported, and how far. This version adds no rows.';
COMMENT ON COLUMN logs.id           IS 'Number of the log.';
COMMENT ON COLUMN logs.app_id       IS 'The app.';
COMMENT ON COLUMN logs.claimed      IS 'Uncompressed bytes, in whole lines, at the last import.';
COMMENT ON COLUMN logs.lines        IS 'Lines that were counted or skipped.';
COMMENT ON COLUMN logs.begun_at     IS 'Time of the first import.';
COMMENT ON COLUMN logs.used_at      IS 'Time of the last import.';
COMMENT ON COLUMN logs.last_hour    IS 'Latest hour of the lines, since 1970. Only written by 0.1.0.';
COMMENT ON COLUMN logs.hash         IS 'Keyed hash of the bytes at the last import. By 0.1.0: their SHA-256.';
COMMENT ON COLUMN logs.file         IS 'File that last contained the log.';
COMMENT ON COLUMN logs.rules        IS 'Flags of import that decide which lines count. Empty: the defaults.';
COMMENT ON COLUMN logs.skips        IS 'Lines that 0.1.0 found in other logs, as pairs: the first line from 0, and the first line after the range.';
COMMENT ON COLUMN logs.counted      IS 'Uncompressed bytes that were counted. Null: the log is from 0.1.0, and positions has the number.';
COMMENT ON COLUMN logs.counted_hash IS 'Keyed hash of the counted bytes, which identifies the log. Null: unknown, for a log that 0.1.0 counted in part.';
COMMENT ON COLUMN logs.beginning    IS 'Keyed hash of the first line that is not a header. Null: unknown.';
COMMENT ON COLUMN logs.look         IS 'Rises when a file with different bytes after the counted ones replaces the log.';
COMMENT ON COLUMN logs.server       IS 'Server that wrote the log. Empty: no name was given.';
COMMENT ON COLUMN logs.inode        IS 'Device and inode of the last file. Empty: standard input.';
COMMENT ON COLUMN logs.state        IS 'Size and modification time of the last file when it had no bytes after claimed. Empty: it had more, or had just changed.';
COMMENT ON COLUMN logs.told         IS 'Choice of the operator. another: a log of its own, even if it shares lines with others. counted: each of its files continues after the counted lines. Empty: none.';
COMMENT ON COLUMN logs.after        IS 'Lines up to this second are skipped. Null: none are.';
COMMENT ON COLUMN logs.after_lines  IS 'Keyed hashes, 8 bytes each, of the lines of that second that another log had counted. Only these lines of that second are skipped.';
COMMENT ON COLUMN logs.last_at      IS 'Latest time of a counted or skipped line. Null: no line had a time.';
COMMENT ON COLUMN logs.tail         IS 'The last counted lines in order, 12 bytes each: a keyed hash, and the seconds from the line''s time to last_at.';

COMMENT ON TABLE  log_samples        IS 'Samples of the lines of each log and hour by which 0.2 compared logs. This version adds no rows.';
COMMENT ON COLUMN log_samples.app_id IS 'The app.';
COMMENT ON COLUMN log_samples.log_id IS 'The log.';
COMMENT ON COLUMN log_samples.hour   IS 'The hour of the lines, since 1970, by the clock that they show.';
COMMENT ON COLUMN log_samples.sample IS 'The hash below which all lines are in the sample, 8 bytes. Then up to 256 different lines in order of hash, 20 bytes each: keyed hash, first byte in the log, number in this hour.';

COMMENT ON TABLE  log_lines        IS 'Lines of logs by which 0.1.0 found them in other files. This version adds no rows.';
COMMENT ON COLUMN log_lines.app_id IS 'The app.';
COMMENT ON COLUMN log_lines.log_id IS 'The log.';
COMMENT ON COLUMN log_lines.line   IS 'Number of the first line, from 0.';
COMMENT ON COLUMN log_lines.hour   IS 'The hour of the lines, since 1970, by the clock that they show.';
COMMENT ON COLUMN log_lines.hashes IS 'XXH64 of each line, 8 bytes each, the highest byte first.';
