-- What a log says of its events; counts by value have the most frequent first.
SELECT *
FROM (
    SELECT
        count(*) AS events,
        strftime(make_timestamp(min(t_us)), '%Y-%m-%dT%H:%M:%SZ') AS first,
        strftime(make_timestamp(max(t_us)), '%Y-%m-%dT%H:%M:%SZ') AS last,
        count(DISTINCT visitor_id) AS visitors,
        count_if(is_purchase) AS purchases,
        histogram(local_day) AS events_by_day,
        histogram(action) AS by_action,
        histogram(device) AS devices,
        histogram(channel) AS channels
    FROM {table}
), (
    SELECT count(*) AS clients, count_if(several) AS shared, max(n) AS busiest
    FROM (
        SELECT count(*) AS n, min(visitor_id) IS DISTINCT FROM max(visitor_id) AS several
        FROM {table} GROUP BY client_id
    )
)
