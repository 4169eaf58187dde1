-- What an import sets, and the functions that its SQL needs.
SET partitioned_write_max_open_files = 1000;
SET enable_progress_bar = true;
SET enable_progress_bar_print = false;
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
SET allow_community_extensions = false;

-- Blanks and tabs at the ends are cut; nothing left is nothing. To look first is five times as fast as to cut.
CREATE TEMP MACRO trimmed(x) AS nullif(
    CASE WHEN prefix(x, ' ') OR suffix(x, ' ') OR prefix(x, chr(9)) OR suffix(x, chr(9))
         THEN trim(x, ' ' || chr(9)) ELSE x END, '');

CREATE TEMP MACRO unquoted(x) AS
    CASE WHEN prefix(x, '"') AND suffix(x, '"') AND length(x) > 1
         THEN replace(substring(x, 2, length(x) - 2), '""', '"') ELSE x END;

-- Times are microseconds since 1970 UTC, NULL where the text is no time. One that names no zone is in the connection's: in
-- an hour that the clocks repeat the later one, and a note counts them; one that the clocks skipped is what it would have
-- been without the change. A zone by name must not get to the cast: DuckDB
-- 1.5 would read later times without one in that zone. So UTC becomes Z, and in a second attempt what is ISO 8601, too:
-- small letters, a decimal comma, no seconds.
CREATE TEMP MACRO mended(x) AS regexp_replace(regexp_replace(regexp_replace(replace(upper(x), ',', '.'),
    ' *(Z|UTC|GMT)$', 'Z'), '([0-9]) +([-+])', '\1\2'), '([T ][0-9]{2}:[0-9]{2})(Z|[-+])', '\1:00\2');

CREATE TEMP MACRO iso_us(x) AS epoch_us(coalesce(
    CASE WHEN regexp_full_match(x, '[-0-9T:.+ /]*(?:Z| UTC)?')
         THEN TRY_CAST(CASE WHEN suffix(x, ' UTC') THEN left(x, -4) || 'Z' ELSE x END AS TIMESTAMPTZ) END,
    CASE WHEN regexp_full_match(x, '(?i)[-0-9T:.,+ /]*(?:Z|UTC|GMT)?')
         THEN TRY_CAST(mended(x) AS TIMESTAMPTZ) END));

CREATE TEMP MACRO unix_us(x, factor) AS TRY_CAST(round(TRY_CAST(x AS DOUBLE) * factor) AS BIGINT);

-- A number below the first bound is seconds (to the year 5138), below the second milliseconds, and so on.
CREATE TEMP MACRO sized_us(x, size) AS
    CASE WHEN size IS NULL THEN iso_us(x) WHEN size < 1e11 THEN unix_us(x, 1e6)
         WHEN size < 1e14 THEN unix_us(x, 1e3) WHEN size < 1e17 THEN unix_us(x, 1e0)
         ELSE TRY_CAST(x AS BIGINT) // 1000 END;

CREATE TEMP MACRO auto_us(x) AS sized_us(x, abs(TRY_CAST(x AS DOUBLE)));

-- Behind a colon a sign belongs to an offset, before it to a date.
CREATE TEMP MACRO zoneless(x) AS NOT suffix(x, 'Z') AND TRY_CAST(x AS DOUBLE) IS NULL
    AND NOT regexp_matches(x, '(?i)(?:Z|UTC|GMT)$|:.*[-+]');

CREATE TEMP MACRO bucket_of(x, n) AS ('0x' || left(md5(x), 8))::UINTEGER % n;

-- Whether the clocks of the connection's zone have shown the same an hour before.
CREATE TEMP MACRO is_repeated(t) AS current_setting('TimeZone') <> 'UTC'
    AND make_timestamptz(t)::TIMESTAMP = make_timestamptz(t - 3600000000)::TIMESTAMP;

-- The fields of a line, NULL where a quotation mark is where none may be; ``other`` is the delimiter in a pattern. Cut at
-- quotation marks, every second piece was inside: only outside of it a delimiter divides.
CREATE TEMP MACRO field_pattern(other, inside) AS
    '(?: *"(?:' || inside || '|"")*" *| *[^" ' || other || '][^' || other || ']*| *)';
CREATE TEMP MACRO line_pattern(other, inside) AS
    field_pattern(other, inside) || '(?:' || other || field_pattern(other, inside) || ')*';
CREATE TEMP MACRO fields_of(line, delimiter, other) AS CASE
    WHEN NOT contains(line, '"') OR regexp_full_match(line, line_pattern(other, '[^"' || other || ']'))
    THEN string_split(line, delimiter)
    WHEN regexp_full_match(line, line_pattern(other, '[^"]'))
    THEN string_split(array_to_string(list_transform(string_split(line, '"'), lambda piece, place:
        CASE WHEN place % 2 = 1 THEN replace(piece, delimiter, chr(0)) ELSE piece END), '"'), chr(0)) END;
