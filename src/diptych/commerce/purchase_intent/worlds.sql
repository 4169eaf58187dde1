-- What a session's worlds are made of: its first event, all clients of its visitor, what they did until the moment.
-- A session by visitor goes on as that visitor's; in others one who was not known may log in.
COPY (
  WITH event AS (FROM read_parquet([{events}], hive_partitioning = false)),
  session AS (FROM read_parquet([{sessions}])),
  first AS (
    SELECT points.*, event.*, session.visitor_id AS visitor FROM points
    JOIN session USING (session_id) JOIN event ON event.event_id = points.session_id),
  members AS (
    SELECT world, client_id FROM first
    UNION SELECT world, event.client_id FROM first JOIN event ON event.visitor_id = first.visitor),
  kept AS (
    SELECT world, event.* REPLACE (
      CASE WHEN step = 0 AND action = 'page' AND t_us = moment THEN 'something else' ELSE page_type END AS page_type,
      event_id + world * $ids AS event_id)
    FROM members JOIN event USING (client_id) JOIN points USING (world) WHERE t_us <= moment),
  ends AS (
    SELECT world, $ids // 2 + i AS event_id, moment + (i + 1) * (1 + hash(world, $seed) % $gap)::BIGINT AS t_us,
      $types[1 + (hash(world, i, 'page') % len($types))::BIGINT] AS page_type,
      ['pc', 'tablet', 'tv'][1 + (hash(world, i, 'device') % 3)::BIGINT] AS device,
      ['paid', 'other'][1 + (hash(world, i, 'channel') % 2)::BIGINT] AS channel,
      CASE WHEN i < $pages THEN 'page' ELSE 'purchase' END AS action, i > hash(world) % (2 * $pages) AS new_visitor
    FROM points, range($pages + 1) AS pages(i)),
  ending AS (
    SELECT world, first.* EXCLUDE (world, session_id, step, moment, bought, is_known, visitor) REPLACE (
      ends.event_id + world * $ids AS event_id, ends.t_us AS t_us, ends.device AS device, ends.channel AS channel,
      ends.page_type AS page_type, ends.action AS action, ends.action = 'purchase' AS is_purchase,
      NULL AS query, NULL AS item_id, NULL AS price,
      CASE WHEN $by = 'visitor' THEN visitor_id WHEN is_known THEN visitor
           WHEN new_visitor THEN 'another visitor' END AS visitor_id)
    FROM first JOIN ends USING (world) WHERE bought OR ends.action = 'page'),
  begin AS (
    SELECT 0 AS world, * REPLACE (0 AS event_id, (SELECT min(start_us) FROM session) AS t_us, NULL AS visitor_id) FROM event LIMIT 1)
  SELECT * EXCLUDE (world) REPLACE (
    world || ':' || client_id AS client_id, world || ':' || visitor_id AS visitor_id,
    world || ':' || given_session AS given_session)
  FROM (FROM kept UNION ALL BY NAME FROM ending UNION ALL BY NAME FROM begin) ORDER BY client_id, t_us, event_id
) TO {file} (FORMAT parquet)
