CREATE FUNCTION report.uniques(app text, target text, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT u.uniques, u.exact, u.standard_error, u.erased
    FROM asked_app(app, from_day, to_day) AS a (id)
    JOIN pages AS p ON p.app_id = a.id AND p.key = page_key(as_stored(uniques.target))
    CROSS JOIN LATERAL group_uniques(a.id, ARRAY[p.id], from_day, to_day) AS u
$$;

COMMENT ON FUNCTION report.uniques(text, text, integer, integer) IS 'Number of visitors of a page or site in a range of days, each counted once: SELECT * FROM report.uniques(''demo'', ''example.com'', 20190601, 20190630).';

CREATE FUNCTION report.uniques(app text, targets text[], from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT u.uniques, u.exact, u.standard_error, u.erased
    FROM asked_app(app, from_day, to_day) AS a (id)
    CROSS JOIN LATERAL group_uniques(a.id,
                                     ARRAY(SELECT p.id FROM pages AS p
                                           WHERE p.app_id = a.id AND p.key IN (SELECT page_key(as_stored(unnest(uniques.targets))))),
                                     from_day, to_day) AS u
$$;

COMMENT ON FUNCTION report.uniques(text, text[], integer, integer) IS 'Number of visitors of any of several pages or sites in a range of days. Exact while their visits are kept, otherwise with a standard error. erased: days of erased visitors, who cannot be distinguished. Fails for more than 100,000 targets, or 1,000,000 visits.';

-- Every visitor of a page is a visitor of its site. So for a prefix that covers whole sites, the visitors of
-- these sites are counted instead of the visitors of the pages.
CREATE FUNCTION report.uniques_under(app text, prefix text, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT u.uniques, u.exact, u.standard_error, u.erased
    FROM asked_app(app, from_day, to_day) AS a (id)
    CROSS JOIN LATERAL group_uniques(a.id,
                                     CASE
                                         WHEN strpos(as_stored(prefix), '/') IN (0, length(prefix))
                                         THEN ARRAY(SELECT s.id FROM pages AS s
                                                    WHERE s.app_id = a.id AND s.site_id IS NULL
                                                      AND (prefix = s.uri || '/' OR s.uri ~>=~ prefix AND s.uri ~<~ (prefix || U&'\+10FFFF'))
                                                      AND left(s.uri, 200) ~>=~ left(split_part(prefix, '/', 1), 200)
                                                      AND left(s.uri, 200) ~<=~ left(split_part(prefix, '/', 1) || U&'\+10FFFF', 200)
                                                    LIMIT 100001)
                                         ELSE ARRAY(SELECT p.id FROM pages AS p
                                                    WHERE p.app_id = a.id AND p.site_id IS NOT NULL
                                                      AND p.uri ~>=~ prefix AND p.uri ~<~ (prefix || U&'\+10FFFF')
                                                      AND left(p.uri, 200) ~>=~ left(prefix, 200)
                                                      AND left(p.uri, 200) ~<=~ left(prefix || U&'\+10FFFF', 200)
                                                    LIMIT 100001)
                                     END,
                                     from_day, to_day) AS u
$$;

COMMENT ON FUNCTION report.uniques_under(text, text, integer, integer) IS 'Number of visitors of all pages whose uri starts with a prefix. If the prefix covers whole sites, like example.com/, the visitors of these sites are counted. For one site the number is exact, otherwise as for several targets. SELECT * FROM report.uniques_under(''demo'', ''example.com/blog/'', 20190601, 20190630).';

REVOKE ALL ON FUNCTION report.uniques(text, text, integer, integer), report.uniques(text, text[], integer, integer),
    report.uniques_under(text, text, integer, integer) FROM PUBLIC;
