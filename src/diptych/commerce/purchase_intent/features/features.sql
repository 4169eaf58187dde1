-- What is known of every session that has {least} pages, in DuckDB's words, which Ibis translates for Spark.
--
-- Three streams per visitor are put in the order of time: queries of long sessions, visits that count, purchases that count; what a query
-- gets is what was added up strictly before it. So nothing is compared with everything, and no session sees itself, one that begins later,
-- or a purchase that comes later in an earlier one.
--
-- A session counts from its start where its visitor was known before its first page. Where the visitor logged in later, it counts from its
-- end: before the log-in it was unknown whose it was. The same holds for a purchase before the log-in.
WITH known AS (
  FROM {sessions} SELECT *, pages_before_identified = 0 AS on_arrival
  WHERE visitor_id IN (SELECT visitor_id FROM {sessions} WHERE n_pages >= {least})),
stream AS ( -- of one moment queries (role 0) come first, so that they see only what was strictly before
  SELECT 0 AS role, visitor_id, session_id, device, start_us AS at_us, NULL::BIGINT AS bought_us FROM known WHERE n_pages >= {least}
  UNION ALL
  SELECT 1, visitor_id, session_id, device, CASE WHEN on_arrival THEN start_us ELSE end_us END, NULL FROM known
  UNION ALL
  SELECT 2, visitor_id, session_id, device,
    CASE WHEN on_arrival OR pages_before_identified < pages_before_purchase THEN first_purchase_us ELSE end_us END, first_purchase_us
  FROM known WHERE first_purchase_us IS NOT NULL),
by_device AS (
  SELECT *, sum((role = 1)::INT) OVER (
    PARTITION BY visitor_id, device ORDER BY at_us, role ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS on_device
  FROM stream),
counted AS (
  SELECT role, visitor_id, session_id, max(bought_us) OVER so_far AS last_purchase_us,
    sum((role = 1)::INT) OVER so_far AS sessions, sum((role = 2)::INT) OVER so_far AS orders,
    sum((role = 1 AND on_device = 1)::INT) OVER so_far + (on_device = 0)::INT AS devices
  FROM by_device
  WINDOW so_far AS (PARTITION BY visitor_id ORDER BY at_us, role ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
numbered AS ( -- visits, the first is 1, with the last devices
  SELECT visitor_id, session_id, at_us, row_number() OVER in_turn AS number, device AS device_before_1,
    lag(device, 1) OVER in_turn AS device_before_2, lag(device, 2) OVER in_turn AS device_before_3,
    lag(device, 3) OVER in_turn AS device_before_4
  FROM stream WHERE role = 1 WINDOW in_turn AS (PARTITION BY visitor_id ORDER BY at_us, session_id)),
visits AS (
  SELECT *, sum((device_before_1 <> device_before_2)::INT) OVER (
    PARTITION BY visitor_id ORDER BY at_us, session_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS switched
  FROM numbered),
opened AS (SELECT session_id, {opened} FROM {pages} GROUP BY session_id)
SELECT session.session_id, min(session.session_id) OVER (PARTITION BY session.person) AS person, session.start_us, session.end_us,
  session.purchase AS label, session.pages_before_purchase::DOUBLE AS pages_before_purchase,
  session.pages_before_identified::DOUBLE AS pages_before_identified, opened.* EXCLUDE (session_id),
  coalesce(session.channel, '') AS channel, coalesce(session.device, '') AS device, session.start_hour::DOUBLE AS start_hour,
  session.start_dow::DOUBLE AS start_dow, counted.orders::DOUBLE AS orders,
  ((session.start_us - counted.last_purchase_us) / {day})::DOUBLE AS days_since_purchase, counted.sessions::DOUBLE AS sessions,
  counted.devices::DOUBLE AS devices, coalesce(device_before_1, '') AS device_before_1, coalesce(device_before_2, '') AS device_before_2,
  coalesce(device_before_3, '') AS device_before_3, coalesce(device_before_4, '') AS device_before_4,
  (CASE WHEN counted.sessions IS NOT NULL THEN coalesce(visits.switched, 0) END)::DOUBLE AS switches,
  (CASE WHEN counted.sessions > 0 THEN counted.sessions - 1 ELSE counted.sessions END)::DOUBLE AS pairs,
  (CASE WHEN counted.sessions IS NOT NULL THEN (session.start_us - {since}) / {day} END)::DOUBLE AS history_days
FROM {sessions} AS session
LEFT JOIN counted ON counted.session_id = session.session_id AND counted.role = 0
LEFT JOIN visits ON visits.visitor_id = counted.visitor_id AND visits.number = counted.sessions
LEFT JOIN opened ON opened.session_id = session.session_id
WHERE session.n_pages >= {least}
