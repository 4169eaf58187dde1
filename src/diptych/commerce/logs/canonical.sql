-- The rows of a file as canonical events; database.py fills in the braces. What is not given is NULL, as text.
SELECT
    event_id,
    coalesce(client_identity, 'visitor:' || visitor_identity)::VARCHAR AS client_id,
    visitor_identity::VARCHAR AS visitor_id,
    session_identity::VARCHAR AS given_session,
    given_time::BIGINT AS t_us,
    coalesce({device}, 'unknown')::VARCHAR AS device,
    coalesce(lower(given_channel), 'unknown')::VARCHAR AS channel,
    CASE WHEN regexp_full_match(given_country, '[A-Za-z][A-Za-z]') THEN upper(given_country) END AS country,
    given_action::VARCHAR AS action,
    CASE WHEN given_action = 'page' THEN given_page_type END::VARCHAR AS page_type,
    given_query::VARCHAR AS query,
    item_identity::VARCHAR AS item_id,
    CASE WHEN isfinite(number) THEN number END AS price,
    coalesce(given_action = 'purchase' OR given_purchase, false) AS is_purchase,
    given_address::VARCHAR AS address,
    coalesce(given_is_twin, false) AS is_twin,
    readable,
    given_raw_action::VARCHAR AS raw_action,
    given_written::VARCHAR AS written,
    given_agent::VARCHAR AS agent,
    out_of_order,
    coalesce(is_repeated(given_time), false) AS repeated,
    client_identity IS NULL AND visitor_identity IS NOT NULL AS visitor_clients,
    given_country IS NOT NULL AND country IS NULL AS bad_countries,
    given_price IS NOT NULL AND price IS NULL AS bad_prices,
    coalesce({zoneless}, false) AS zoneless
FROM (
    SELECT *, {identities}, TRY_CAST(given_price AS DOUBLE) AS number
    FROM (
        SELECT *, coalesce(given_time < lag(given_time) OVER (), false) AS out_of_order
        FROM (SELECT event_id, readable, {given} FROM ({rows}))
    )
)
