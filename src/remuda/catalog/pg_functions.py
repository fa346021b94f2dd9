"""PostgreSQL 15's functions that the grid has as well, with their overloads.

Each one is: its number (oid), its name (~: as before), kind, volatility, strict, set and parallel
as letters of pg_proc, l for one that leaks nothing, the type of the result and those of the
arguments. Marks tell differences from the usual: = its source, ^ its planner function, $ its
cost, # its rows, ? how many arguments have defaults, * that the last one is VARIADIC. Behind
a colon stand the arguments as they are shown, behind an arrow the result.
"""

from __future__ import annotations

from typing import Final

ROUTINES: Final = r"""
1394 abs fis-s- float4 float4 =float4abs; 1395 ~ fis-s- float8 float8 =float8abs; 1396 ~ fis-s-
int8 int8 =int8abs; 1397 ~ fis-s- int4 int4 =int4abs; 1398 ~ fis-s- int2 int2 =int2abs; 1705 ~
fis-s- numeric numeric =numeric_abs; 1601 acos fis-s- float8 float8 =dacos; 2732 acosd fis-s-
float8 float8 =dacosd; 2466 acosh fis-s- float8 float8 =dacosh; 1199 age fis-s- interval
timestamptz,timestamptz =timestamptz_age; 1386 ~ fss-s- interval timestamptz; 2058 ~ fis-s-
interval timestamp,timestamp =timestamp_age; 2059 ~ fss-s- interval timestamp; 2335 array_agg
ai--s- anyarray anynonarray; 378 array_append fi--s- anycompatiblearray
anycompatiblearray,anycompatible; 383 array_cat fi--s- anycompatiblearray
anycompatiblearray,anycompatiblearray; 747 array_dims fis-s- text anyarray; 1193 array_fill fi--s-
anyarray anyelement,int4[]; 2176 array_length fis-s- int4 anyarray,int4; 2091 array_lower fis-s-
int4 anyarray,int4; 748 array_ndims fis-s- int4 anyarray; 3277 array_position fi--s- int4
anycompatiblearray,anycompatible; 3278 ~ fi--s- int4 anycompatiblearray,anycompatible,int4
=array_position_start; 3279 array_positions fi--s- int4[] anycompatiblearray,anycompatible; 379
array_prepend fi--s- anycompatiblearray anycompatible,anycompatiblearray; 3167 array_remove fi--s-
anycompatiblearray anycompatiblearray,anycompatible; 3168 array_replace fi--s- anycompatiblearray
anycompatiblearray,anycompatible,anycompatible; 3153 array_to_json fss-s- json anyarray; 384
array_to_string fs--s- text anyarray,text,text =array_to_text_null; 395 ~ fss-s- text
anyarray,text =array_to_text; 2092 array_upper fis-s- int4 anyarray,int4; 1620 ascii fis-s- int4
text; 1600 asin fis-s- float8 float8 =dasin; 2731 asind fis-s- float8 float8 =dasind; 2465 asinh
fis-s- float8 float8 =dasinh; 1602 atan fis-s- float8 float8 =datan; 1603 atan2 fis-s- float8
float8,float8 =datan2; 2734 atan2d fis-s- float8 float8,float8 =datan2d; 2733 atand fis-s- float8
float8 =datand; 2467 atanh fis-s- float8 float8 =datanh; 2100 avg ai--s- numeric int8; 2101 ~
ai--s- numeric int4; 2102 ~ ai--s- numeric int2; 2103 ~ ai--s- numeric numeric; 2104 ~ ai--s-
float8 float4; 2105 ~ ai--s- float8 float8; 2106 ~ ai--s- interval interval; 2236 bit_and ai--s-
int2 int2; 2238 ~ ai--s- int4 int4; 2240 ~ ai--s- int8 int8; 1810 bit_length fis-s- int4 bytea;
1811 ~ fis-s- int4 text; 2237 bit_or ai--s- int2 int2; 2239 ~ ai--s- int4 int4; 2241 ~ ai--s- int8
int8; 6164 bit_xor ai--s- int2 int2; 6165 ~ ai--s- int4 int4; 6166 ~ ai--s- int8 int8; 2517
bool_and ai--s- bool bool; 2518 bool_or ai--s- bool bool; 884 btrim fis-s- text text,text; 885 ~
fis-s- text text =btrim1; 2015 ~ fis-s- bytea bytea,bytea =byteatrim; 3179 cardinality fis-s- int4
anyarray =array_cardinality; 1345 cbrt fis-s- float8 float8 =dcbrt; 1711 ceil fis-s- numeric
numeric =numeric_ceil; 2308 ~ fis-s- float8 float8 =dceil; 2167 ceiling fis-s- numeric numeric
=numeric_ceil; 2320 ~ fis-s- float8 float8 =dceil; 1372 char_length fis-s- int4 bpchar =bpcharlen;
1381 ~ fis-s- int4 text =textlen; 1367 character_length fis-s- int4 bpchar =bpcharlen; 1369 ~
fis-s- int4 text =textlen; 1621 chr fis-s- text int4; 2649 clock_timestamp fvs-s- timestamptz -;
1216 col_description fss-s- text oid,int4 = $100; 3058 concat fs--s- text any =text_concat *:
VARIADIC "any"; 3059 concat_ws fs--s- text text,any =text_concat_ws *: text, VARIADIC "any"; 1714
convert_from fss-s- text bytea,name =pg_convert_from; 1717 convert_to fss-s- bytea text,name
=pg_convert_to; 2829 corr ai--s- float8 float8,float8; 1605 cos fis-s- float8 float8 =dcos; 2736
cosd fis-s- float8 float8 =dcosd; 2463 cosh fis-s- float8 float8 =dcosh; 1607 cot fis-s- float8
float8 =dcot; 2738 cotd fis-s- float8 float8 =dcotd; 2147 count ai--s- int8 any ^int8inc_support;
2803 ~ ai--s- int8 - ^int8inc_support; 2827 covar_pop ai--s- float8 float8,float8; 2828 covar_samp
ai--s- float8 float8,float8; 3104 cume_dist wi--s- float8 - =window_cume_dist; 861
current_database fss-s- name -; 1402 current_schema fss-u- name -; 1403 current_schemas fss-u-
name[] bool; 2077 current_setting fss-s- text text =show_config_by_name; 3294 ~ fss-s- text
text,bool =show_config_by_name_missing_ok; 745 current_user fss-s- name -; 1178 date fss-s- date
timestamptz =timestamptz_date; 2029 ~ fis-s- date timestamp =timestamp_date; 6177 date_bin fis-s-
timestamp interval,timestamp,timestamp =timestamp_bin; 6178 ~ fis-s- timestamptz
interval,timestamptz,timestamptz =timestamptz_bin; 1171 date_part fss-s- float8 text,timestamptz
=timestamptz_part; 1172 ~ fis-s- float8 text,interval =interval_part; 1384 ~ fis-s- float8
text,date; 2021 ~ fis-s- float8 text,timestamp =timestamp_part; 1217 date_trunc fss-s- timestamptz
text,timestamptz =timestamptz_trunc; 1218 ~ fis-s- interval text,interval =interval_trunc; 1284 ~
fss-s- timestamptz text,timestamptz,text =timestamptz_trunc_zone; 2020 ~ fis-s- timestamp
text,timestamp =timestamp_trunc; 1947 decode fis-s- bytea text,text =binary_decode; 1608 degrees
fis-s- float8 float8; 3102 dense_rank wi--s- int8 - =window_dense_rank ^window_dense_rank_support;
1973 div fis-s- numeric numeric,numeric =numeric_div_trunc; 1339 dlog10 fis-s- float8 float8; 1946
encode fis-s- text bytea,text =binary_encode; 2519 every ai--s- bool bool; 1347 exp fis-s- float8
float8 =dexp; 1732 ~ fis-s- numeric numeric =numeric_exp; 1376 factorial fis-s- numeric int8
=numeric_fac; 3112 first_value wis-s- anyelement anyelement =window_first_value; 1712 floor fis-s-
numeric numeric =numeric_floor; 2309 ~ fis-s- float8 float8 =dfloor; 3539 format fs--s- text
text,any =text_format *: text, VARIADIC "any"; 3540 ~ fs--s- text text =text_format_nv; 1081
format_type fs--s- text oid,int4; 5044 gcd fis-s- int4 int4,int4 =int4gcd; 5045 ~ fis-s- int8
int8,int8 =int8gcd; 5048 ~ fis-s- numeric numeric,numeric =numeric_gcd; 3432 gen_random_uuid
fvs-sl uuid -; 938 generate_series fisrs- timestamp timestamp,timestamp,interval
=generate_series_timestamp #1000; 939 ~ fssrs- timestamptz timestamptz,timestamptz,interval
=generate_series_timestamptz #1000; 1066 ~ fisrs- int4 int4,int4,int4 =generate_series_step_int4
^generate_series_int4_support #1000; 1067 ~ fisrs- int4 int4,int4 =generate_series_int4
^generate_series_int4_support #1000; 1068 ~ fisrs- int8 int8,int8,int8 =generate_series_step_int8
^generate_series_int8_support #1000; 1069 ~ fisrs- int8 int8,int8 =generate_series_int8
^generate_series_int8_support #1000; 3259 ~ fisrs- numeric numeric,numeric,numeric
=generate_series_step_numeric #1000; 3260 ~ fisrs- numeric numeric,numeric
=generate_series_numeric #1000; 1191 generate_subscripts fisrs- int4 anyarray,int4,bool #1000;
1192 ~ fisrs- int4 anyarray,int4 =generate_subscripts_nodir #1000; 721 get_byte fis-s- int4
bytea,int4 =byteaGetByte; 1039 getdatabaseencoding fss-s- name -; 3024 has_any_column_privilege
fss-s- bool name,text,text =has_any_column_privilege_name_name $10; 3025 ~ fss-s- bool
name,oid,text =has_any_column_privilege_name_id $10; 3026 ~ fss-s- bool oid,text,text
=has_any_column_privilege_id_name $10; 3027 ~ fss-s- bool oid,oid,text
=has_any_column_privilege_id_id $10; 3028 ~ fss-s- bool text,text =has_any_column_privilege_name
$10; 3029 ~ fss-s- bool oid,text =has_any_column_privilege_id $10; 3012 has_column_privilege
fss-s- bool name,text,text,text =has_column_privilege_name_name_name; 3013 ~ fss-s- bool
name,text,int2,text =has_column_privilege_name_name_attnum; 3014 ~ fss-s- bool name,oid,text,text
=has_column_privilege_name_id_name; 3015 ~ fss-s- bool name,oid,int2,text
=has_column_privilege_name_id_attnum; 3016 ~ fss-s- bool oid,text,text,text
=has_column_privilege_id_name_name; 3017 ~ fss-s- bool oid,text,int2,text
=has_column_privilege_id_name_attnum; 3018 ~ fss-s- bool oid,oid,text,text
=has_column_privilege_id_id_name; 3019 ~ fss-s- bool oid,oid,int2,text
=has_column_privilege_id_id_attnum; 3020 ~ fss-s- bool text,text,text
=has_column_privilege_name_name; 3021 ~ fss-s- bool text,int2,text
=has_column_privilege_name_attnum; 3022 ~ fss-s- bool oid,text,text =has_column_privilege_id_name;
3023 ~ fss-s- bool oid,int2,text =has_column_privilege_id_attnum; 2250 has_database_privilege
fss-s- bool name,text,text =has_database_privilege_name_name; 2251 ~ fss-s- bool name,oid,text
=has_database_privilege_name_id; 2252 ~ fss-s- bool oid,text,text =has_database_privilege_id_name;
2253 ~ fss-s- bool oid,oid,text =has_database_privilege_id_id; 2254 ~ fss-s- bool text,text
=has_database_privilege_name; 2255 ~ fss-s- bool oid,text =has_database_privilege_id; 3000
has_foreign_data_wrapper_privilege fss-s- bool name,text,text
=has_foreign_data_wrapper_privilege_name_name; 3001 ~ fss-s- bool name,oid,text
=has_foreign_data_wrapper_privilege_name_id; 3002 ~ fss-s- bool oid,text,text
=has_foreign_data_wrapper_privilege_id_name; 3003 ~ fss-s- bool oid,oid,text
=has_foreign_data_wrapper_privilege_id_id; 3004 ~ fss-s- bool text,text
=has_foreign_data_wrapper_privilege_name; 3005 ~ fss-s- bool oid,text
=has_foreign_data_wrapper_privilege_id; 2256 has_function_privilege fss-s- bool name,text,text
=has_function_privilege_name_name; 2257 ~ fss-s- bool name,oid,text
=has_function_privilege_name_id; 2258 ~ fss-s- bool oid,text,text =has_function_privilege_id_name;
2259 ~ fss-s- bool oid,oid,text =has_function_privilege_id_id; 2260 ~ fss-s- bool text,text
=has_function_privilege_name; 2261 ~ fss-s- bool oid,text =has_function_privilege_id; 2262
has_language_privilege fss-s- bool name,text,text =has_language_privilege_name_name; 2263 ~ fss-s-
bool name,oid,text =has_language_privilege_name_id; 2264 ~ fss-s- bool oid,text,text
=has_language_privilege_id_name; 2265 ~ fss-s- bool oid,oid,text =has_language_privilege_id_id;
2266 ~ fss-s- bool text,text =has_language_privilege_name; 2267 ~ fss-s- bool oid,text
=has_language_privilege_id; 2268 has_schema_privilege fss-s- bool name,text,text
=has_schema_privilege_name_name; 2269 ~ fss-s- bool name,oid,text =has_schema_privilege_name_id;
2270 ~ fss-s- bool oid,text,text =has_schema_privilege_id_name; 2271 ~ fss-s- bool oid,oid,text
=has_schema_privilege_id_id; 2272 ~ fss-s- bool text,text =has_schema_privilege_name; 2273 ~
fss-s- bool oid,text =has_schema_privilege_id; 2181 has_sequence_privilege fss-s- bool
name,text,text =has_sequence_privilege_name_name; 2182 ~ fss-s- bool name,oid,text
=has_sequence_privilege_name_id; 2183 ~ fss-s- bool oid,text,text =has_sequence_privilege_id_name;
2184 ~ fss-s- bool oid,oid,text =has_sequence_privilege_id_id; 2185 ~ fss-s- bool text,text
=has_sequence_privilege_name; 2186 ~ fss-s- bool oid,text =has_sequence_privilege_id; 3006
has_server_privilege fss-s- bool name,text,text =has_server_privilege_name_name; 3007 ~ fss-s-
bool name,oid,text =has_server_privilege_name_id; 3008 ~ fss-s- bool oid,text,text
=has_server_privilege_id_name; 3009 ~ fss-s- bool oid,oid,text =has_server_privilege_id_id; 3010 ~
fss-s- bool text,text =has_server_privilege_name; 3011 ~ fss-s- bool oid,text
=has_server_privilege_id; 1922 has_table_privilege fss-s- bool name,text,text
=has_table_privilege_name_name; 1923 ~ fss-s- bool name,oid,text =has_table_privilege_name_id;
1924 ~ fss-s- bool oid,text,text =has_table_privilege_id_name; 1925 ~ fss-s- bool oid,oid,text
=has_table_privilege_id_id; 1926 ~ fss-s- bool text,text =has_table_privilege_name; 1927 ~ fss-s-
bool oid,text =has_table_privilege_id; 2390 has_tablespace_privilege fss-s- bool name,text,text
=has_tablespace_privilege_name_name; 2391 ~ fss-s- bool name,oid,text
=has_tablespace_privilege_name_id; 2392 ~ fss-s- bool oid,text,text
=has_tablespace_privilege_id_name; 2393 ~ fss-s- bool oid,oid,text
=has_tablespace_privilege_id_id; 2394 ~ fss-s- bool text,text =has_tablespace_privilege_name; 2395
~ fss-s- bool oid,text =has_tablespace_privilege_id; 3138 has_type_privilege fss-s- bool
name,text,text =has_type_privilege_name_name; 3139 ~ fss-s- bool name,oid,text
=has_type_privilege_name_id; 3140 ~ fss-s- bool oid,text,text =has_type_privilege_id_name; 3141 ~
fss-s- bool oid,oid,text =has_type_privilege_id_id; 3142 ~ fss-s- bool text,text
=has_type_privilege_name; 3143 ~ fss-s- bool oid,text =has_type_privilege_id; 2196
inet_client_addr fs--r- inet -; 2197 inet_client_port fs--r- int4 -; 2198 inet_server_addr fs--r-
inet -; 2199 inet_server_port fs--r- int4 -; 872 initcap fis-s- text text; 1373 isfinite fis-s-
bool date =date_finite; 1389 ~ fis-s- bool timestamptz =timestamp_finite; 1390 ~ fis-s- bool
interval =interval_finite; 2048 ~ fis-s- bool timestamp =timestamp_finite; 3175 json_agg as--s-
json anyelement; 3955 json_array_elements fisrs- json json #100: from_json json, OUT value json;
3969 json_array_elements_text fisrs- text json #100: from_json json, OUT value text; 3956
json_array_length fis-s- int4 json; 3198 json_build_array fs--s- json any *: VARIADIC "any"; 3199
~ fs--s- json - =json_build_array_noargs; 3200 json_build_object fs--s- json any *: VARIADIC
"any"; 3201 ~ fs--s- json - =json_build_object_noargs; 3958 json_each fisrs- record json #100:
from_json json, OUT key text, OUT value json; 3959 json_each_text fisrs- record json #100:
from_json json, OUT key text, OUT value text; 3202 json_object fis-s- json text[]; 3203 ~ fis-s-
json text[],text[] =json_object_two_arg; 3197 json_object_agg as--s- json any,any; 3957
json_object_keys fisrs- text json #100; 3261 json_strip_nulls fis-s- json json; 3968 json_typeof
fis-s- text json; 3267 jsonb_agg as--s- jsonb anyelement; 3219 jsonb_array_elements fisrs- jsonb
jsonb #100: from_json jsonb, OUT value jsonb; 3465 jsonb_array_elements_text fisrs- text jsonb
#100: from_json jsonb, OUT value text; 3207 jsonb_array_length fis-s- int4 jsonb; 3271
jsonb_build_array fs--s- jsonb any *: VARIADIC "any"; 3272 ~ fs--s- jsonb -
=jsonb_build_array_noargs; 3273 jsonb_build_object fs--s- jsonb any *: VARIADIC "any"; 3274 ~
fs--s- jsonb - =jsonb_build_object_noargs; 3304 jsonb_delete_path fis-s- jsonb jsonb,text[]; 3208
jsonb_each fisrs- record jsonb #100: from_json jsonb, OUT key text, OUT value jsonb; 3932
jsonb_each_text fisrs- record jsonb #100: from_json jsonb, OUT key text, OUT value text; 4047
jsonb_exists fis-s- bool jsonb,text; 4049 jsonb_exists_all fis-s- bool jsonb,text[]; 4048
jsonb_exists_any fis-s- bool jsonb,text[]; 3579 jsonb_insert fis-s- jsonb jsonb,text[],jsonb,bool
?1: jsonb_in jsonb, path text[], replacement jsonb, insert_after boolean DEFAULT false; 3263
jsonb_object fis-s- jsonb text[]; 3264 ~ fis-s- jsonb text[],text[] =jsonb_object_two_arg; 3270
jsonb_object_agg ai--s- jsonb any,any; 3931 jsonb_object_keys fisrs- text jsonb #100; 3306
jsonb_pretty fis-s- text jsonb; 3305 jsonb_set fis-s- jsonb jsonb,text[],jsonb,bool ?1: jsonb_in
jsonb, path text[], replacement jsonb, create_if_missing boolean DEFAULT true; 5054 jsonb_set_lax
fi--s- jsonb jsonb,text[],jsonb,bool,text ?2: jsonb_in jsonb, path text[], replacement jsonb,
create_if_missing boolean DEFAULT true, null_value_treatment text DEFAULT 'use_json_null'::text;
3262 jsonb_strip_nulls fis-s- jsonb jsonb; 3210 jsonb_typeof fis-s- text jsonb; 1295 justify_days
fis-s- interval interval =interval_justify_days; 1175 justify_hours fis-s- interval interval
=interval_justify_hours; 2711 justify_interval fis-s- interval interval
=interval_justify_interval; 3106 lag wis-s- anyelement anyelement =window_lag; 3107 ~ wis-s-
anyelement anyelement,int4 =window_lag_with_offset; 3108 ~ wis-s- anycompatible
anycompatible,int4,anycompatible =window_lag_with_offset_and_default; 3113 last_value wis-s-
anyelement anyelement =window_last_value; 5046 lcm fis-s- int4 int4,int4 =int4lcm; 5047 ~ fis-s-
int8 int8,int8 =int8lcm; 5049 ~ fis-s- numeric numeric,numeric =numeric_lcm; 3109 lead wis-s-
anyelement anyelement =window_lead; 3110 ~ wis-s- anyelement anyelement,int4
=window_lead_with_offset; 3111 ~ wis-s- anycompatible anycompatible,int4,anycompatible
=window_lead_with_offset_and_default; 3060 left fis-s- text text,int4 =text_left; 1317 length
fis-s- int4 text =textlen; 1318 ~ fis-s- int4 bpchar =bpcharlen; 2010 ~ fis-s- int4 bytea
=byteaoctetlen; 1569 like fis-s- bool text,text =textlike ^textlike_support; 1571 ~ fis-s- bool
name,text =namelike ^textlike_support; 1341 ln fis-s- float8 float8 =dlog1; 1734 ~ fis-s- numeric
numeric =numeric_ln; 1340 log fis-s- float8 float8 =dlog10; 1736 ~ fis-s- numeric numeric,numeric
=numeric_log; 1741 ~ fis-s- numeric numeric; 1194 log10 fis-s- float8 float8 =dlog10; 1481 ~
fis-s- numeric numeric; 870 lower fis-s- text text; 873 lpad fis-s- text text,int4,text; 879 ~
fis-s- text text,int4; 875 ltrim fis-s- text text,text; 881 ~ fis-s- text text =ltrim1; 6195 ~
fis-s- bytea bytea,bytea =bytealtrim; 3846 make_date fis-s- date int4,int4,int4: year integer,
month integer, day integer; 3464 make_interval fis-s- interval
int4,int4,int4,int4,int4,int4,float8 ?7: years integer DEFAULT 0, months integer DEFAULT 0, weeks
integer DEFAULT 0, days integer DEFAULT 0, hours integer DEFAULT 0, mins integer DEFAULT 0, secs
double precision DEFAULT 0.0; 3847 make_time fis-s- time int4,int4,float8: hour integer, min
integer, sec double precision; 3461 make_timestamp fis-s- timestamp
int4,int4,int4,int4,int4,float8: year integer, month integer, mday integer, hour integer, min
integer, sec double precision; 3462 make_timestamptz fss-s- timestamptz
int4,int4,int4,int4,int4,float8: year integer, month integer, mday integer, hour integer, min
integer, sec double precision; 2050 max ai--s- anyarray anyarray; 2115 ~ ai--s- int8 int8; 2116 ~
ai--s- int4 int4; 2117 ~ ai--s- int2 int2; 2118 ~ ai--s- oid oid; 2119 ~ ai--s- float4 float4;
2120 ~ ai--s- float8 float8; 2122 ~ ai--s- date date; 2123 ~ ai--s- time time; 2126 ~ ai--s-
timestamp timestamp; 2127 ~ ai--s- timestamptz timestamptz; 2128 ~ ai--s- interval interval; 2129
~ ai--s- text text; 2130 ~ ai--s- numeric numeric; 2244 ~ ai--s- bpchar bpchar; 2311 md5 fis-sl
text text =md5_text; 2321 ~ fis-sl text bytea =md5_bytea; 2051 min ai--s- anyarray anyarray; 2131
~ ai--s- int8 int8; 2132 ~ ai--s- int4 int4; 2133 ~ ai--s- int2 int2; 2134 ~ ai--s- oid oid; 2135
~ ai--s- float4 float4; 2136 ~ ai--s- float8 float8; 2138 ~ ai--s- date date; 2139 ~ ai--s- time
time; 2142 ~ ai--s- timestamp timestamp; 2143 ~ ai--s- timestamptz timestamptz; 2144 ~ ai--s-
interval interval; 2145 ~ ai--s- text text; 2146 ~ ai--s- numeric numeric; 2245 ~ ai--s- bpchar
bpchar; 5042 min_scale fis-s- int4 numeric =numeric_min_scale; 940 mod fis-s- int2 int2,int2
=int2mod; 941 ~ fis-s- int4 int4,int4 =int4mod; 947 ~ fis-s- int8 int8,int8 =int8mod; 1728 ~
fis-s- numeric numeric,numeric =numeric_mod; 3984 mode ai--s- anyelement anyelement: ORDER BY
anyelement; 1299 now fss-s- timestamptz -; 3114 nth_value wis-s- anyelement anyelement,int4
=window_nth_value; 3105 ntile wis-s- int4 int4 =window_ntile; 440 num_nonnulls fi--s- int4 any
=pg_num_nonnulls *: VARIADIC "any"; 438 num_nulls fi--s- int4 any =pg_num_nulls *: VARIADIC "any";
1215 obj_description fss-s- text oid,name = $100; 1348 ~ fss-s- text oid = $100; 720 octet_length
fis-s- int4 bytea =byteaoctetlen; 1374 ~ fis-s- int4 text =textoctetlen; 1375 ~ fis-s- int4 bpchar
=bpcharoctetlen; 749 overlay fis-s- bytea bytea,bytea,int4,int4 =byteaoverlay; 752 ~ fis-s- bytea
bytea,bytea,int4 =byteaoverlay_no_len; 1404 ~ fis-s- text text,text,int4,int4 =textoverlay; 1405 ~
fis-s- text text,text,int4 =textoverlay_no_len; 3103 percent_rank wi--s- float8 -
=window_percent_rank; 3974 percentile_cont ai--s- float8 float8,float8: double precision ORDER BY
double precision; 3980 ~ ai--s- float8[] float8[],float8: double precision[] ORDER BY double
precision; 3972 percentile_disc ai--s- anyelement float8,anyelement: double precision ORDER BY
anyelement; 3978 ~ ai--s- anyarray float8[],anyelement: double precision[] ORDER BY anyelement;
2892 pg_advisory_unlock_all fvs-r- void -; 2026 pg_backend_pid fss-r- int4 -; 2561
pg_blocking_pids fvs-s- int4[] int4; 2171 pg_cancel_backend fvs-s- bool int4; 1264
pg_char_to_encoding fss-s- int4 name =PG_char_to_encoding; 810 pg_client_encoding fss-s- name -;
3815 pg_collation_is_visible fss-s- bool oid $10; 2093 pg_conversion_is_visible fss-s- bool oid
$10; 2168 pg_database_size fvs-s- int8 name =pg_database_size_name; 2324 ~ fvs-s- int8 oid
=pg_database_size_oid; 3537 pg_describe_object fss-s- text oid,oid,int4; 2319
pg_encoding_max_length fis-s- int4 int4 =pg_encoding_max_length_sql; 1597 pg_encoding_to_char
fss-s- name int4 =PG_encoding_to_char; 2081 pg_function_is_visible fss-s- bool oid $10; 1387
pg_get_constraintdef fss-s- text oid; 2508 ~ fss-s- text oid,bool =pg_get_constraintdef_ext; 3808
pg_get_function_arg_default fss-s- text oid,int4; 2162 pg_get_function_arguments fss-s- text oid;
2232 pg_get_function_identity_arguments fss-s- text oid; 2165 pg_get_function_result fss-s- text
oid; 6197 pg_get_function_sqlbody fss-s- text oid; 2098 pg_get_functiondef fss-s- text oid; 1643
pg_get_indexdef fss-s- text oid; 2507 ~ fss-s- text oid,int4,bool =pg_get_indexdef_ext; 1686
pg_get_keywords fssrs- record - $10 #500: OUT word text, OUT catcode "char", OUT barelabel
boolean, OUT catdesc text, OUT baredesc text; 3408 pg_get_partition_constraintdef fss-s- text oid;
3352 pg_get_partkeydef fss-s- text oid; 1573 pg_get_ruledef fss-s- text oid; 2504 ~ fss-s- text
oid,bool =pg_get_ruledef_ext; 1665 pg_get_serial_sequence fss-s- text text,text; 3415
pg_get_statisticsobjdef fss-s- text oid; 6174 pg_get_statisticsobjdef_columns fss-s- text oid;
1662 pg_get_triggerdef fss-s- text oid; 2730 ~ fss-s- text oid,bool =pg_get_triggerdef_ext; 1642
pg_get_userbyid fss-s- name oid; 1641 pg_get_viewdef fss-r- text oid; 2506 ~ fss-r- text oid,bool
=pg_get_viewdef_ext; 3159 ~ fss-r- text oid,int4 =pg_get_viewdef_wrap; 2705 pg_has_role fss-s-
bool name,name,text =pg_has_role_name_name; 2706 ~ fss-s- bool name,oid,text =pg_has_role_name_id;
2707 ~ fss-s- bool oid,name,text =pg_has_role_id_name; 2708 ~ fss-s- bool oid,oid,text
=pg_has_role_id_id; 2709 ~ fss-s- bool name,text =pg_has_role_name; 2710 ~ fss-s- bool oid,text
=pg_has_role_id; 2998 pg_indexes_size fvs-s- int8 regclass; 3810 pg_is_in_recovery fvs-s- bool -;
2855 pg_is_other_temp_schema fss-s- bool oid; 3035 pg_listening_channels fssrr- text - #10; 2854
pg_my_temp_schema fss-r- oid -; 3296 pg_notification_queue_usage fvs-r- float8 -; 3036 pg_notify
fv--r- void text,text; 2083 pg_opclass_is_visible fss-s- bool oid $10; 2082 pg_operator_is_visible
fss-s- bool oid $10; 3829 pg_opfamily_is_visible fss-s- bool oid $10; 6121
pg_relation_is_publishable fss-s- bool regclass; 2325 pg_relation_size fvs-s- int8 regclass; 2332
~ fvs-s- int8 regclass,text; 3334
pg_size_bytes fis-s- int8 text; 2288 pg_size_pretty fis-s- text int8; 3166 ~ fis-s- text numeric
=pg_size_pretty_numeric; 2626 pg_sleep fvs-s- void float8; 3403 pg_statistics_obj_is_visible
fss-s- bool oid $10; 2079 pg_table_is_visible fss-s- bool oid $10; 2997 pg_table_size fvs-s- int8
regclass; 3778 pg_tablespace_location fss-s- text oid; 2322 pg_tablespace_size fvs-s- int8 oid
=pg_tablespace_size_oid; 2323 ~ fvs-s- int8 name =pg_tablespace_size_name; 2096
pg_terminate_backend fvs-s- bool int4,int8 ?1: pid integer, timeout bigint DEFAULT 0; 2286
pg_total_relation_size fvs-s- int8 regclass; 3758 pg_ts_config_is_visible fss-s- bool oid $10;
3757 pg_ts_dict_is_visible fss-s- bool oid $10; 3756 pg_ts_parser_is_visible fss-s- bool oid $10;
3768 pg_ts_template_is_visible fss-s- bool oid $10; 2080 pg_type_is_visible fss-s- bool oid $10;
1619 pg_typeof fs--s- regtype any; 1610 pi fis-s- float8 - =dpi; 849 position fis-s- int4
text,text =textpos; 2014 ~ fis-s- int4 bytea,bytea =byteapos; 1346 pow fis-s- float8 float8,float8
=dpow; 1738 ~ fis-s- numeric numeric,numeric =numeric_power; 1368 power fis-s- float8
float8,float8 =dpow; 2169 ~ fis-s- numeric numeric,numeric =numeric_power; 1282 quote_ident fis-s-
text text; 1283 quote_literal fis-s- text text; 1285 ~ fss-s- text anyelement; 1289 quote_nullable
fi--s- text text; 1290 ~ fs--s- text anyelement; 1609 radians fis-s- float8 float8; 1598 random
fvs-r- float8 - =drandom; 3101 rank wi--s- int8 - =window_rank ^window_rank_support; 6254
regexp_count fis-s- int4 text,text =regexp_count_no_start; 6255 ~ fis-s- int4 text,text,int4
=regexp_count_no_flags; 6256 ~ fis-s- int4 text,text,int4,text; 6257 regexp_instr fis-s- int4
text,text =regexp_instr_no_start; 6258 ~ fis-s- int4 text,text,int4 =regexp_instr_no_n; 6259 ~
fis-s- int4 text,text,int4,int4 =regexp_instr_no_endoption; 6260 ~ fis-s- int4
text,text,int4,int4,int4 =regexp_instr_no_flags; 6261 ~ fis-s- int4 text,text,int4,int4,int4,text
=regexp_instr_no_subexpr; 6262 ~ fis-s- int4 text,text,int4,int4,int4,text,int4; 6263 regexp_like
fis-s- bool text,text =regexp_like_no_flags; 6264 ~ fis-s- bool text,text,text; 3396 regexp_match
fis-s- text[] text,text =regexp_match_no_flags; 3397 ~ fis-s- text[] text,text,text; 2763
regexp_matches fisrs- text[] text,text =regexp_matches_no_flags #1; 2764 ~ fisrs- text[]
text,text,text #10; 2284 regexp_replace fis-s- text text,text,text =textregexreplace_noopt; 2285 ~
fis-s- text text,text,text,text =textregexreplace; 6251 ~ fis-s- text
text,text,text,int4,int4,text =textregexreplace_extended; 6252 ~ fis-s- text
text,text,text,int4,int4 =textregexreplace_extended_no_flags; 6253 ~ fis-s- text
text,text,text,int4 =textregexreplace_extended_no_n; 2767 regexp_split_to_array fis-s- text[]
text,text =regexp_split_to_array_no_flags; 2768 ~ fis-s- text[] text,text,text; 2765
regexp_split_to_table fisrs- text text,text =regexp_split_to_table_no_flags #1000; 2766 ~ fisrs-
text text,text,text #1000; 6265 regexp_substr fis-s- text text,text =regexp_substr_no_start; 6266
~ fis-s- text text,text,int4 =regexp_substr_no_n; 6267 ~ fis-s- text text,text,int4,int4
=regexp_substr_no_flags; 6268 ~ fis-s- text text,text,int4,int4,text =regexp_substr_no_subexpr;
6269 ~ fis-s- text text,text,int4,int4,text,int4; 2822 regr_avgx ai--s- float8 float8,float8; 2823
regr_avgy ai--s- float8 float8,float8; 2818 regr_count ai--s- int8 float8,float8; 2826
regr_intercept ai--s- float8 float8,float8; 2824 regr_r2 ai--s- float8 float8,float8; 2825
regr_slope ai--s- float8 float8,float8; 2819 regr_sxx ai--s- float8 float8,float8; 2821 regr_sxy
ai--s- float8 float8,float8; 2820 regr_syy ai--s- float8 float8,float8; 1622 repeat fis-s- text
text,int4; 2087 replace fis-s- text text,text,text =replace_text; 3062 reverse fis-s- text text
=text_reverse; 3061 right fis-s- text text,int4 =text_right; 1342 round fis-s- float8 float8
=dround; 1707 ~ fis-s- numeric numeric,int4 =numeric_round; 1708 ~ fis-s- numeric numeric; 3100
row_number wi--s- int8 - =window_row_number ^window_row_number_support; 3298 row_security_active
fss-s- bool oid; 3299 ~ fss-s- bool text =row_security_active_name; 874 rpad fis-s- text
text,int4,text; 880 ~ fis-s- text text,int4; 876 rtrim fis-s- text text,text; 882 ~ fis-s- text
text =rtrim1; 6196 ~ fis-s- bytea bytea,bytea =byteartrim; 3281 scale fis-s- int4 numeric
=numeric_scale; 746 session_user fss-s- name -; 722 set_byte fis-s- bytea bytea,int4,int4
=byteaSetByte; 1599 setseed fvs-r- void float8; 3419 sha224 fis-sl bytea bytea =sha224_bytea; 3420
sha256 fis-sl bytea bytea =sha256_bytea; 3421 sha384 fis-sl bytea bytea =sha384_bytea; 3422 sha512
fis-sl bytea bytea =sha512_bytea; 1993 shobj_description fss-s- text oid,name = $100; 1706 sign
fis-s- numeric numeric =numeric_sign; 2310 ~ fis-s- float8 float8 =dsign; 1604 sin fis-s- float8
float8 =dsin; 2735 sind fis-s- float8 float8 =dsind; 2462 sinh fis-s- float8 float8 =dsinh; 2088
split_part fis-s- text text,text,int4; 1344 sqrt fis-s- float8 float8 =dsqrt; 1730 ~ fis-s-
numeric numeric =numeric_sqrt; 3696 starts_with fis-sl bool text,text =text_starts_with
^text_starts_with_support; 2648 statement_timestamp fss-s- timestamptz -; 2154 stddev ai--s-
float8 int8; 2155 ~ ai--s- float8 int4; 2156 ~ ai--s- float8 int2; 2157 ~ ai--s- float8 float4;
2158 ~ ai--s- float8 float8; 2159 ~ ai--s- float8 numeric; 2724 stddev_pop ai--s- float8 int8;
2725 ~ ai--s- float8 int4; 2726 ~ ai--s- float8 int2; 2727 ~ ai--s- float8 float4; 2728 ~ ai--s-
float8 float8; 2729 ~ ai--s- float8 numeric; 2712 stddev_samp ai--s- float8 int8; 2713 ~ ai--s-
float8 int4; 2714 ~ ai--s- float8 int2; 2715 ~ ai--s- float8 float4; 2716 ~ ai--s- float8 float8;
2717 ~ ai--s- float8 numeric; 3538 string_agg ai--s- text text,text; 3545 ~ ai--s- bytea
bytea,bytea; 376 string_to_array fi--s- text[] text,text,text =text_to_array_null; 394 ~ fi--s-
text[] text,text =text_to_array; 6160 string_to_table fi-rs- text text,text =text_to_table #1000;
6161 ~ fi-rs- text text,text,text =text_to_table_null #1000; 868 strpos fis-s- int4 text,text
=textpos; 877 substr fis-s- text text,int4,int4 =text_substr; 883 ~ fis-s- text text,int4
=text_substr_no_len; 2085 ~ fis-s- bytea bytea,int4,int4 =bytea_substr; 2086 ~ fis-s- bytea
bytea,int4 =bytea_substr_no_len; 936 substring fis-s- text text,int4,int4 =text_substr; 937 ~
fis-s- text text,int4 =text_substr_no_len; 2012 ~ fis-s- bytea bytea,int4,int4 =bytea_substr; 2013
~ fis-s- bytea bytea,int4 =bytea_substr_no_len; 2073 ~ fis-s- text text,text =textregexsubstr;
2074 ~ fis-s- text text,text,text; 2107 sum ai--s- numeric int8; 2108 ~ ai--s- int8 int4; 2109 ~
ai--s- int8 int2; 2110 ~ ai--s- float4 float4; 2111 ~ ai--s- float8 float8; 2113 ~ ai--s- interval
interval; 2114 ~ ai--s- numeric numeric; 1606 tan fis-s- float8 float8 =dtan; 2737 tand fis-s-
float8 float8 =dtand; 2464 tanh fis-s- float8 float8 =dtanh; 1026 timezone fis-s- timestamp
interval,timestamptz =timestamptz_izone; 1159 ~ fis-s- timestamp text,timestamptz
=timestamptz_zone; 2069 ~ fis-s- timestamptz text,timestamp =timestamp_zone; 2070 ~ fis-s-
timestamptz interval,timestamp =timestamp_izone; 1768 to_char fss-s- text interval,text
=interval_to_char; 1770 ~ fss-s- text timestamptz,text =timestamptz_to_char; 1772 ~ fss-s- text
numeric,text =numeric_to_char; 1773 ~ fss-s- text int4,text =int4_to_char; 1774 ~ fss-s- text
int8,text =int8_to_char; 1775 ~ fss-s- text float4,text =float4_to_char; 1776 ~ fss-s- text
float8,text =float8_to_char; 2049 ~ fss-s- text timestamp,text =timestamp_to_char; 1780 to_date
fss-s- date text,text; 2089 to_hex fis-s- text int4 =to_hex32; 2090 ~ fis-s- text int8 =to_hex64;
3176 to_json fss-s- json anyelement; 3787 to_jsonb fss-s- jsonb anyelement; 1777 to_number fss-s-
numeric text,text =numeric_to_number; 3495 to_regclass fss-s- regclass text; 4086 to_regnamespace
fss-s- regnamespace text; 3494 to_regproc fss-s- regproc text; 3479 to_regprocedure fss-s-
regprocedure text; 4093 to_regrole fss-s- regrole text; 3493 to_regtype fss-s- regtype text; 1158
to_timestamp fis-s- timestamptz float8 =float8_timestamptz; 1778 ~ fss-s- timestamptz text,text;
2647 transaction_timestamp fss-s- timestamptz - =now; 878 translate fis-s- text text,text,text;
6172 trim_array fis-s- anyarray anyarray,int4; 5043 trim_scale fis-s- numeric numeric
=numeric_trim_scale; 1343 trunc fis-s- float8 float8 =dtrunc; 1709 ~ fis-s- numeric numeric,int4
=numeric_trunc; 1710 ~ fis-s- numeric numeric; 6198 unistr fis-s- text text; 2331 unnest fisrs-
anyelement anyarray =array_unnest ^array_unnest_support #100; 871 upper fis-s- text text; 2718
var_pop ai--s- float8 int8; 2719 ~ ai--s- float8 int4; 2720 ~ ai--s- float8 int2; 2721 ~ ai--s-
float8 float4; 2722 ~ ai--s- float8 float8; 2723 ~ ai--s- float8 numeric; 2641 var_samp ai--s-
float8 int8; 2642 ~ ai--s- float8 int4; 2643 ~ ai--s- float8 int2; 2644 ~ ai--s- float8 float4;
2645 ~ ai--s- float8 float8; 2646 ~ ai--s- float8 numeric; 2148 variance ai--s- float8 int8; 2149
~ ai--s- float8 int4; 2150 ~ ai--s- float8 int2; 2151 ~ ai--s- float8 float4; 2152 ~ ai--s- float8
float8; 2153 ~ ai--s- float8 numeric; 89 version fss-s- text - =pgsql_version; 320 width_bucket
fis-s- int4 float8,float8,float8,int4 =width_bucket_float8; 2170 ~ fis-s- int4
numeric,numeric,numeric,int4 =width_bucket_numeric
"""

OTHER_NUMBERS: Final = {
    "extract": 6199,
    "jsonb_extract_path": 3217,
    "jsonb_extract_path_text": 3940,
    "jsonb_path_exists": 4005,
    "jsonb_path_exists_tz": 1177,
    "jsonb_path_match": 4009,
    "jsonb_path_match_tz": 2030,
    "jsonb_path_query_array": 4007,
    "jsonb_path_query_array_tz": 1180,
    "jsonb_path_query_first": 4008,
    "jsonb_path_query_first_tz": 2023,
    "overlaps": 1271,
}
"""Functions whose arguments have types here that PostgreSQL does not take for them: the lowest
number of each name."""
