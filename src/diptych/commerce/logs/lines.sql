-- The lines of a file of text, in fields. NUL is the delimiter, so whatever is in the second column says that there was
-- one.
SELECT number + {first_number} AS event_id, readable, {texts}
FROM (
    SELECT *, coalesce(len(fields) = {count}, false) AS readable
    FROM (
        SELECT number, CASE WHEN line IS NOT NULL AND rest IS NULL THEN {fields} END AS fields
        FROM (
            SELECT row_number() OVER () - 1 - {skipped} AS number, line, rest
            FROM read_csv(
                {path}, auto_detect = false, header = false, delim = chr(0), quote = '', escape = '', comment = '',
                nullstr = chr(1), columns = {{'line': 'VARCHAR', 'rest': 'VARCHAR'}}, null_padding = true,
                strict_mode = false, store_rejects = true, rejects_limit = 0, compression = '{compression}',
                hive_partitioning = false)
            WHERE line IS NULL OR rest IS NOT NULL OR NOT prefix(line, ' ') OR trim(line, ' ') <> ''
        )
        WHERE number >= 0
    )
)
