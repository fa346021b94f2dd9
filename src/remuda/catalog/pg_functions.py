"""PostgreSQL's OIDs of the functions that the grid has as well: the lowest of each name.

Aggregates carry theirs in ``plan.functions.aggregates``; their other names stand here."""

from __future__ import annotations

from typing import Final

_NUMBERS: Final = """
abs 1394, acos 1601, acosd 2732, acosh 2466, age 1181, array_append 378, array_cat 383, array_dims
747, array_fill 1193, array_length 2176, array_lower 2091, array_ndims 748, array_position 3277,
array_positions 3279, array_prepend 379, array_remove 3167, array_replace 3168, array_to_string
384, array_upper 2092, ascii 1620, asin 1600, asind 2731, asinh 2465, atan 1602, atan2 1603, atan2d
2734, atand 2733, atanh 2467, bit_length 1810, cardinality 3179, cbrt 1345, ceil 1711, chr 1621,
clock_timestamp 2649, concat 3058, concat_ws 3059, convert_from 1714, convert_to 1717, cos 1605,
cosd 2736, cosh 2463, cot 1607, cotd 2738, cume_dist 3104, current_user 745, date_bin 6177,
date_trunc 1217, decode 1947, degrees 1608, dense_rank 3102, div 1973, encode 1946, every 2519, exp
1347, extract 6199, factorial 1376, first_value 3112, floor 1712, format 3539, gcd 5044,
gen_random_uuid 3432, get_byte 721, initcap 872, isfinite 1373, json_agg 3175, json_object_agg
3197, jsonb_array_length 3207, jsonb_build_array 3271, jsonb_build_object 3273, jsonb_extract_path
3217, jsonb_extract_path_text 3940, jsonb_insert 3579, jsonb_object 3263, jsonb_path_exists 4005,
jsonb_path_exists_tz 1177, jsonb_path_match 4009, jsonb_path_match_tz 2030, jsonb_path_query_array
4007, jsonb_path_query_array_tz 1180, jsonb_path_query_first 4008, jsonb_path_query_first_tz 2023,
jsonb_pretty 3306, jsonb_set 3305, jsonb_set_lax 5054, jsonb_strip_nulls 3262, jsonb_typeof 3210,
justify_days 1295, justify_hours 1175, justify_interval 2711, lag 3106, last_value 3113, lcm 5046,
lead 3109, left 3060, length 1317, ln 1341, log 1340, log10 1194, lower 870, lpad 873, ltrim 875,
make_date 3846, make_interval 3464, make_time 3847, make_timestamp 3461, make_timestamptz 3462, md5
2311, min_scale 5042, nth_value 3114, ntile 3105, num_nonnulls 440, num_nulls 438, octet_length
720, overlaps 1271, overlay 749, percent_rank 3103, pi 1610, position 849, power 1368, quote_ident
1282, quote_literal 1283, quote_nullable 1289, radians 1609, random 1598, rank 3101, regexp_count
6254, regexp_instr 6257, regexp_like 6263, regexp_match 3396, regexp_replace 2284,
regexp_split_to_array 2767, regexp_substr 6265, repeat 1622, replace 2087, reverse 3062, right
3061, round 1342, row_number 3100, rpad 874, rtrim 876, scale 3281, set_byte 722, setseed 1599,
sha224 3419, sha256 3420, sha384 3421, sha512 3422, sign 1706, sin 1604, sind 2735, sinh 2462,
split_part 2088, sqrt 1344, starts_with 3696, stddev 2154, string_to_array 376, substring 936, tan
1606, tand 2737, tanh 2464, timezone 1026, to_char 1768, to_date 1780, to_hex 2089, to_jsonb 3787,
to_number 1777, to_timestamp 1158, translate 878, trim_array 6172, trim_scale 5043, trunc 753,
unistr 6198, upper 871, variance 2148, width_bucket 320
"""

FUNCTION_OIDS: Final = {
    name: int(oid) for name, oid in (each.split() for each in _NUMBERS.split(","))
}
