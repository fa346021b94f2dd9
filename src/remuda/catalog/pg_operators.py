"""PostgreSQL 15's operators that the grid has as well.

Each one is: its number (oid), its name, the types of its left and right operand (-: none) and of
its result, the numbers of its commutator and its negator (0: none), the number and the name of its
function, and whether joins can merge (m) and hash (h) by it.
"""

from __future__ import annotations

from functools import cache
from typing import Final

OPERATORS: Final = r"""
640 !~ name text bool 0 639 1252 nameregexne --; 642 !~ text text bool 0 641 1256 textregexne --;
1056 !~ bpchar text bool 0 1055 1659 bpcharregexne --; 1227 !~* name text bool 0 1226 1241
nameicregexne --; 1229 !~* text text bool 0 1228 1239 texticregexne --; 1235 !~* bpchar text bool
0 1234 1657 bpcharicregexne --; 1208 !~~ name text bool 0 1207 859 namenlike --; 1210 !~~ text
text bool 0 1209 851 textnlike --; 1212 !~~ bpchar text bool 0 1211 1632 bpcharnlike --; 1626 !~~*
name text bool 0 1625 1636 nameicnlike --; 1628 !~~* text text bool 0 1627 1634 texticnlike --;
1630 !~~* bpchar text bool 0 1629 1661 bpcharicnlike --; 1876 # int2 int2 int2 1876 0 1894 int2xor
--; 1882 # int4 int4 int4 1882 0 1900 int4xor --; 1888 # int8 int8 int8 1888 0 1906 int8xor --;
3287 #- jsonb text[] jsonb 0 0 3304 jsonb_delete_path --; 3213 #> jsonb text[] jsonb 0 0 3217
jsonb_extract_path --; 3966 #> json text[] json 0 0 3951 json_extract_path --; 3206 #>> jsonb
text[] text 0 0 3940 jsonb_extract_path_text --; 3967 #>> json text[] text 0 0 3953
json_extract_path_text --; 439 % int8 int8 int8 0 0 945 int8mod --; 529 % int2 int2 int2 0 0 155
int2mod --; 530 % int4 int4 int4 0 0 156 int4mod --; 1762 % numeric numeric numeric 0 0 1729
numeric_mod --; 1874 & int2 int2 int2 1874 0 1892 int2and --; 1880 & int4 int4 int4 1880 0 1898
int4and --; 1886 & int8 int8 int8 1886 0 1904 int8and --; 2750 && anyarray anyarray bool 2750 0
2747 arrayoverlap --; 514 * int4 int4 int4 514 0 141 int4mul --; 526 * int2 int2 int2 526 0 152
int2mul --; 544 * int2 int4 int4 545 0 170 int24mul --; 545 * int4 int2 int4 544 0 171 int42mul
--; 589 * float4 float4 float4 589 0 202 float4mul --; 594 * float8 float8 float8 594 0 216
float8mul --; 686 * int8 int8 int8 686 0 465 int8mul --; 690 * int8 int4 int8 694 0 1276 int84mul
--; 694 * int4 int8 int8 690 0 1280 int48mul --; 820 * int8 int2 int8 824 0 839 int82mul --; 824 *
int2 int8 int8 820 0 943 int28mul --; 1119 * float4 float8 float8 1129 0 279 float48mul --; 1129 *
float8 float4 float8 1119 0 283 float84mul --; 1583 * interval float8 interval 1584 0 1618
interval_mul --; 1584 * float8 interval interval 1583 0 1624 mul_d_interval --; 1760 * numeric
numeric numeric 1760 0 1726 numeric_mul --; 550 + int2 int2 int2 550 0 176 int2pl --; 551 + int4
int4 int4 551 0 177 int4pl --; 552 + int2 int4 int4 553 0 178 int24pl --; 553 + int4 int2 int4 552
0 179 int42pl --; 586 + float4 float4 float4 586 0 204 float4pl --; 591 + float8 float8 float8 591
0 218 float8pl --; 684 + int8 int8 int8 684 0 463 int8pl --; 688 + int8 int4 int8 692 0 1274
int84pl --; 692 + int4 int8 int8 688 0 1278 int48pl --; 818 + int8 int2 int8 822 0 837 int82pl --;
822 + int2 int8 int8 818 0 841 int28pl --; 1076 + date interval timestamp 2551 0 2071
date_pl_interval --; 1100 + date int4 date 2555 0 1141 date_pli --; 1116 + float4 float8 float8
1126 0 281 float48pl --; 1126 + float8 float4 float8 1116 0 285 float84pl --; 1327 + timestamptz
interval timestamptz 2554 0 1189 timestamptz_pl_interval --; 1337 + interval interval interval
1337 0 1169 interval_pl --; 1360 + date time timestamp 1363 0 1272 datetime_pl --; 1363 + time
date timestamp 1360 0 1296 timedate_pl --; 1758 + numeric numeric numeric 1758 0 1724 numeric_add
--; 1800 + time interval time 1849 0 1747 time_pl_interval --; 1849 + interval time time 1800 0
1848 interval_pl_time --; 1916 + - int8 int8 0 0 1910 int8up --; 1917 + - int2 int2 0 0 1911
int2up --; 1918 + - int4 int4 0 0 1912 int4up --; 1919 + - float4 float4 0 0 1913 float4up --;
1920 + - float8 float8 0 0 1914 float8up --; 1921 + - numeric numeric 0 0 1915 numeric_uplus --;
2066 + timestamp interval timestamp 2553 0 2032 timestamp_pl_interval --; 2551 + interval date
timestamp 1076 0 2546 interval_pl_date --; 2553 + interval timestamp timestamp 2066 0 2548
interval_pl_timestamp --; 2554 + interval timestamptz timestamptz 1327 0 2549
interval_pl_timestamptz --; 2555 + int4 date date 1100 0 2550 integer_pl_date --; 484 - - int8
int8 0 0 462 int8um --; 554 - int2 int2 int2 0 0 180 int2mi --; 555 - int4 int4 int4 0 0 181
int4mi --; 556 - int2 int4 int4 0 0 182 int24mi --; 557 - int4 int2 int4 0 0 183 int42mi --; 558 -
- int4 int4 0 0 212 int4um --; 559 - - int2 int2 0 0 213 int2um --; 584 - - float4 float4 0 0 206
float4um --; 585 - - float8 float8 0 0 220 float8um --; 587 - float4 float4 float4 0 0 205
float4mi --; 592 - float8 float8 float8 0 0 219 float8mi --; 685 - int8 int8 int8 0 0 464 int8mi
--; 689 - int8 int4 int8 0 0 1275 int84mi --; 693 - int4 int8 int8 0 0 1279 int48mi --; 819 - int8
int2 int8 0 0 838 int82mi --; 823 - int2 int8 int8 0 0 942 int28mi --; 1077 - date interval
timestamp 0 0 2072 date_mi_interval --; 1099 - date date int4 0 0 1140 date_mi --; 1101 - date
int4 date 0 0 1142 date_mii --; 1117 - float4 float8 float8 0 0 282 float48mi --; 1127 - float8
float4 float8 0 0 286 float84mi --; 1328 - timestamptz timestamptz interval 0 0 1188
timestamptz_mi --; 1329 - timestamptz interval timestamptz 0 0 1190 timestamptz_mi_interval --;
1336 - - interval interval 0 0 1168 interval_um --; 1338 - interval interval interval 0 0 1170
interval_mi --; 1399 - time time interval 0 0 1690 time_mi_time --; 1751 - - numeric numeric 0 0
1771 numeric_uminus --; 1759 - numeric numeric numeric 0 0 1725 numeric_sub --; 1801 - time
interval time 0 0 1748 time_mi_interval --; 2067 - timestamp timestamp interval 0 0 2031
timestamp_mi --; 2068 - timestamp interval timestamp 0 0 2033 timestamp_mi_interval --; 3285 -
jsonb text jsonb 0 0 3302 pg_catalog.jsonb_delete --; 3286 - jsonb int4 jsonb 0 0 3303
pg_catalog.jsonb_delete --; 3398 - jsonb text[] jsonb 0 0 3343 pg_catalog.jsonb_delete --; 3211 ->
jsonb text jsonb 0 0 3478 jsonb_object_field --; 3212 -> jsonb int4 jsonb 0 0 3215
jsonb_array_element --; 3962 -> json text json 0 0 3947 json_object_field --; 3964 -> json int4
json 0 0 3949 json_array_element --; 3477 ->> jsonb text text 0 0 3214 jsonb_object_field_text --;
3481 ->> jsonb int4 text 0 0 3216 jsonb_array_element_text --; 3963 ->> json text text 0 0 3948
json_object_field_text --; 3965 ->> json int4 text 0 0 3950 json_array_element_text --; 527 / int2
int2 int2 0 0 153 int2div --; 528 / int4 int4 int4 0 0 154 int4div --; 546 / int2 int4 int4 0 0
172 int24div --; 547 / int4 int2 int4 0 0 173 int42div --; 588 / float4 float4 float4 0 0 203
float4div --; 593 / float8 float8 float8 0 0 217 float8div --; 687 / int8 int8 int8 0 0 466
int8div --; 691 / int8 int4 int8 0 0 1277 int84div --; 695 / int4 int8 int8 0 0 1281 int48div --;
821 / int8 int2 int8 0 0 840 int82div --; 825 / int2 int8 int8 0 0 948 int28div --; 1118 / float4
float8 float8 0 0 280 float48div --; 1128 / float8 float4 float8 0 0 284 float84div --; 1585 /
interval float8 interval 0 0 1326 interval_div --; 1761 / numeric numeric numeric 0 0 1727
numeric_div --; 37 < int4 int8 bool 419 82 854 int48lt --; 58 < bool bool bool 59 1695 56 boollt
--; 95 < int2 int2 bool 520 524 64 int2lt --; 97 < int4 int4 bool 521 525 66 int4lt --; 255 < name
text bool 264 257 241 namelttext --; 261 < text name bool 258 263 248 textltname --; 412 < int8
int8 bool 413 415 469 int8lt --; 418 < int8 int4 bool 76 430 476 int84lt --; 534 < int2 int4 bool
537 542 160 int24lt --; 535 < int4 int2 bool 536 543 161 int42lt --; 609 < oid oid bool 610 612
716 oidlt --; 622 < float4 float4 bool 623 625 289 float4lt --; 631 < char char bool 633 634 1246
charlt --; 645 < oidvector oidvector bool 646 648 677 oidvectorlt --; 660 < name name bool 662 663
655 namelt --; 664 < text text bool 666 667 740 text_lt --; 672 < float8 float8 bool 674 675 295
float8lt --; 1058 < bpchar bpchar bool 1060 1061 1049 bpcharlt --; 1072 < anyarray anyarray bool
1073 1075 391 array_lt --; 1095 < date date bool 1097 1098 1087 date_lt --; 1110 < time time bool
1112 1113 1102 time_lt --; 1122 < float4 float8 bool 1133 1125 301 float48lt --; 1132 < float8
float4 bool 1123 1135 307 float84lt --; 1322 < timestamptz timestamptz bool 1324 1325 1154
timestamptz_lt --; 1332 < interval interval bool 1334 1335 1164 interval_lt --; 1754 < numeric
numeric bool 1756 1757 1722 numeric_lt --; 1864 < int2 int8 bool 1871 1867 1852 int28lt --; 1870 <
int8 int2 bool 1865 1873 1858 int82lt --; 1957 < bytea bytea bool 1959 1960 1949 bytealt --; 2062
< timestamp timestamp bool 2064 2065 2054 timestamp_lt --; 2345 < date timestamp bool 2375 2348
2338 date_lt_timestamp --; 2358 < date timestamptz bool 2388 2361 2351 date_lt_timestamptz --;
2371 < timestamp date bool 2349 2374 2364 timestamp_lt_date --; 2384 < timestamptz date bool 2362
2387 2377 timestamptz_lt_date --; 2534 < timestamp timestamptz bool 2544 2537 2520
timestamp_lt_timestamptz --; 2540 < timestamptz timestamp bool 2538 2543 2527
timestamptz_lt_timestamp --; 2974 < uuid uuid bool 2975 2977 2954 uuid_lt --; 3242 < jsonb jsonb
bool 3243 3245 4039 jsonb_lt --; 1878 << int2 int4 int2 0 0 1896 int2shl --; 1884 << int4 int4
int4 0 0 1902 int4shl --; 1890 << int8 int4 int8 0 0 1908 int8shl --; 80 <= int4 int8 bool 430 76
856 int48le --; 256 <= name text bool 263 258 242 nameletext --; 262 <= text name bool 257 264 249
textlename --; 414 <= int8 int8 bool 415 413 471 int8le --; 420 <= int8 int4 bool 82 419 478
int84le --; 522 <= int2 int2 bool 524 520 148 int2le --; 523 <= int4 int4 bool 525 521 149 int4le
--; 540 <= int2 int4 bool 543 536 166 int24le --; 541 <= int4 int2 bool 542 537 167 int42le --;
611 <= oid oid bool 612 610 717 oidle --; 624 <= float4 float4 bool 625 623 290 float4le --; 632
<= char char bool 634 633 72 charle --; 647 <= oidvector oidvector bool 648 646 678 oidvectorle
--; 661 <= name name bool 663 662 656 namele --; 665 <= text text bool 667 666 741 text_le --; 673
<= float8 float8 bool 675 674 296 float8le --; 1059 <= bpchar bpchar bool 1061 1060 1050 bpcharle
--; 1074 <= anyarray anyarray bool 1075 1073 393 array_le --; 1096 <= date date bool 1098 1097
1088 date_le --; 1111 <= time time bool 1113 1112 1103 time_le --; 1124 <= float4 float8 bool 1135
1123 302 float48le --; 1134 <= float8 float4 bool 1125 1133 308 float84le --; 1323 <= timestamptz
timestamptz bool 1325 1324 1155 timestamptz_le --; 1333 <= interval interval bool 1335 1334 1165
interval_le --; 1694 <= bool bool bool 1695 59 1691 boolle --; 1755 <= numeric numeric bool 1757
1756 1723 numeric_le --; 1866 <= int2 int8 bool 1873 1865 1854 int28le --; 1872 <= int8 int2 bool
1867 1871 1860 int82le --; 1958 <= bytea bytea bool 1960 1959 1950 byteale --; 2063 <= timestamp
timestamp bool 2065 2064 2055 timestamp_le --; 2346 <= date timestamp bool 2374 2349 2339
date_le_timestamp --; 2359 <= date timestamptz bool 2387 2362 2352 date_le_timestamptz --; 2372 <=
timestamp date bool 2348 2375 2365 timestamp_le_date --; 2385 <= timestamptz date bool 2361 2388
2378 timestamptz_le_date --; 2535 <= timestamp timestamptz bool 2543 2538 2521
timestamp_le_timestamptz --; 2541 <= timestamptz timestamp bool 2537 2544 2528
timestamptz_le_timestamp --; 2976 <= uuid uuid bool 2977 2975 2955 uuid_le --; 3244 <= jsonb jsonb
bool 3245 3243 4041 jsonb_le --; 36 <> int4 int8 bool 417 15 853 int48ne --; 85 <> bool bool bool
85 91 84 boolne --; 259 <> name text bool 265 254 245 namenetext --; 265 <> text name bool 259 260
252 textnename --; 411 <> int8 int8 bool 411 410 468 int8ne --; 417 <> int8 int4 bool 36 416 475
int84ne --; 518 <> int4 int4 bool 518 96 144 int4ne --; 519 <> int2 int2 bool 519 94 145 int2ne
--; 531 <> text text bool 531 98 157 textne --; 538 <> int2 int4 bool 539 532 164 int24ne --; 539
<> int4 int2 bool 538 533 165 int42ne --; 608 <> oid oid bool 608 607 185 oidne --; 621 <> float4
float4 bool 621 620 288 float4ne --; 630 <> char char bool 630 92 70 charne --; 643 <> name name
bool 643 93 659 namene --; 644 <> oidvector oidvector bool 644 649 619 oidvectorne --; 671 <>
float8 float8 bool 671 670 294 float8ne --; 1057 <> bpchar bpchar bool 1057 1054 1053 bpcharne --;
1071 <> anyarray anyarray bool 1071 1070 390 array_ne --; 1094 <> date date bool 1094 1093 1091
date_ne --; 1109 <> time time bool 1109 1108 1106 time_ne --; 1121 <> float4 float8 bool 1131 1120
300 float48ne --; 1131 <> float8 float4 bool 1121 1130 306 float84ne --; 1321 <> timestamptz
timestamptz bool 1321 1320 1153 timestamptz_ne --; 1331 <> interval interval bool 1331 1330 1163
interval_ne --; 1753 <> numeric numeric bool 1753 1752 1719 numeric_ne --; 1863 <> int2 int8 bool
1869 1862 1851 int28ne --; 1869 <> int8 int2 bool 1863 1868 1857 int82ne --; 1956 <> bytea bytea
bool 1956 1955 1953 byteane --; 2061 <> timestamp timestamp bool 2061 2060 2053 timestamp_ne --;
2350 <> date timestamp bool 2376 2347 2343 date_ne_timestamp --; 2363 <> date timestamptz bool
2389 2360 2356 date_ne_timestamptz --; 2376 <> timestamp date bool 2350 2373 2369
timestamp_ne_date --; 2389 <> timestamptz date bool 2363 2386 2382 timestamptz_ne_date --; 2539 <>
timestamp timestamptz bool 2545 2536 2525 timestamp_ne_timestamptz --; 2545 <> timestamptz
timestamp bool 2539 2542 2532 timestamptz_ne_timestamp --; 2973 <> uuid uuid bool 2973 2972 2959
uuid_ne --; 3241 <> jsonb jsonb bool 3241 3240 4038 jsonb_ne --; 3315 <> xid xid bool 3315 352
3308 xidneq --; 3316 <> xid int4 bool 0 353 3309 xidneqint4 --; 2752 <@ anyarray anyarray bool
2751 0 2749 arraycontained --; 3250 <@ jsonb jsonb bool 3246 0 4050 jsonb_contained --; 15 = int4
int8 bool 416 36 852 int48eq mh; 91 = bool bool bool 91 85 60 booleq mh; 92 = char char bool 92
630 61 chareq mh; 93 = name name bool 93 643 62 nameeq mh; 94 = int2 int2 bool 94 519 63 int2eq
mh; 96 = int4 int4 bool 96 518 65 int4eq mh; 98 = text text bool 98 531 67 texteq mh; 254 = name
text bool 260 259 240 nameeqtext mh; 260 = text name bool 254 265 247 texteqname mh; 352 = xid xid
bool 352 3315 68 xideq -h; 353 = xid int4 bool 0 3316 1319 xideqint4 --; 385 = cid cid bool 385 0
69 cideq -h; 410 = int8 int8 bool 410 411 467 int8eq mh; 416 = int8 int4 bool 15 417 474 int84eq
mh; 532 = int2 int4 bool 533 538 158 int24eq mh; 533 = int4 int2 bool 532 539 159 int42eq mh; 607
= oid oid bool 607 608 184 oideq mh; 620 = float4 float4 bool 620 621 287 float4eq mh; 649 =
oidvector oidvector bool 649 644 679 oidvectoreq mh; 670 = float8 float8 bool 670 671 293 float8eq
mh; 1054 = bpchar bpchar bool 1054 1057 1048 bpchareq mh; 1070 = anyarray anyarray bool 1070 1071
744 array_eq mh; 1093 = date date bool 1093 1094 1086 date_eq mh; 1108 = time time bool 1108 1109
1145 time_eq mh; 1120 = float4 float8 bool 1130 1121 299 float48eq mh; 1130 = float8 float4 bool
1120 1131 305 float84eq mh; 1320 = timestamptz timestamptz bool 1320 1321 1152 timestamptz_eq mh;
1330 = interval interval bool 1330 1331 1162 interval_eq mh; 1752 = numeric numeric bool 1752 1753
1718 numeric_eq mh; 1862 = int2 int8 bool 1868 1863 1850 int28eq mh; 1868 = int8 int2 bool 1862
1869 1856 int82eq mh; 1955 = bytea bytea bool 1955 1956 1948 byteaeq mh; 2060 = timestamp
timestamp bool 2060 2061 2052 timestamp_eq mh; 2347 = date timestamp bool 2373 2350 2340
date_eq_timestamp m-; 2360 = date timestamptz bool 2386 2363 2353 date_eq_timestamptz m-; 2373 =
timestamp date bool 2347 2376 2366 timestamp_eq_date m-; 2386 = timestamptz date bool 2360 2389
2379 timestamptz_eq_date m-; 2536 = timestamp timestamptz bool 2542 2539 2522
timestamp_eq_timestamptz m-; 2542 = timestamptz timestamp bool 2536 2545 2529
timestamptz_eq_timestamp m-; 2972 = uuid uuid bool 2972 2973 2956 uuid_eq mh; 3240 = jsonb jsonb
bool 3240 3241 4043 jsonb_eq mh; 59 > bool bool bool 58 1694 57 boolgt --; 76 > int4 int8 bool 418
80 855 int48gt --; 258 > name text bool 261 256 244 namegttext --; 264 > text name bool 255 262
251 textgtname --; 413 > int8 int8 bool 412 414 470 int8gt --; 419 > int8 int4 bool 37 420 477
int84gt --; 520 > int2 int2 bool 95 522 146 int2gt --; 521 > int4 int4 bool 97 523 147 int4gt --;
536 > int2 int4 bool 535 540 162 int24gt --; 537 > int4 int2 bool 534 541 163 int42gt --; 610 >
oid oid bool 609 611 1638 oidgt --; 623 > float4 float4 bool 622 624 291 float4gt --; 633 > char
char bool 631 632 73 chargt --; 646 > oidvector oidvector bool 645 647 681 oidvectorgt --; 662 >
name name bool 660 661 657 namegt --; 666 > text text bool 664 665 742 text_gt --; 674 > float8
float8 bool 672 673 297 float8gt --; 1060 > bpchar bpchar bool 1058 1059 1051 bpchargt --; 1073 >
anyarray anyarray bool 1072 1074 392 array_gt --; 1097 > date date bool 1095 1096 1089 date_gt --;
1112 > time time bool 1110 1111 1104 time_gt --; 1123 > float4 float8 bool 1132 1124 303 float48gt
--; 1133 > float8 float4 bool 1122 1134 309 float84gt --; 1324 > timestamptz timestamptz bool 1322
1323 1157 timestamptz_gt --; 1334 > interval interval bool 1332 1333 1167 interval_gt --; 1756 >
numeric numeric bool 1754 1755 1720 numeric_gt --; 1865 > int2 int8 bool 1870 1866 1853 int28gt
--; 1871 > int8 int2 bool 1864 1872 1859 int82gt --; 1959 > bytea bytea bool 1957 1958 1951
byteagt --; 2064 > timestamp timestamp bool 2062 2063 2057 timestamp_gt --; 2349 > date timestamp
bool 2371 2346 2341 date_gt_timestamp --; 2362 > date timestamptz bool 2384 2359 2354
date_gt_timestamptz --; 2375 > timestamp date bool 2345 2372 2367 timestamp_gt_date --; 2388 >
timestamptz date bool 2358 2385 2380 timestamptz_gt_date --; 2538 > timestamp timestamptz bool
2540 2535 2523 timestamp_gt_timestamptz --; 2544 > timestamptz timestamp bool 2534 2541 2530
timestamptz_gt_timestamp --; 2975 > uuid uuid bool 2974 2976 2958 uuid_gt --; 3243 > jsonb jsonb
bool 3242 3244 4040 jsonb_gt --; 82 >= int4 int8 bool 420 37 857 int48ge --; 257 >= name text bool
262 255 243 namegetext --; 263 >= text name bool 256 261 250 textgename --; 415 >= int8 int8 bool
414 412 472 int8ge --; 430 >= int8 int4 bool 80 418 479 int84ge --; 524 >= int2 int2 bool 522 95
151 int2ge --; 525 >= int4 int4 bool 523 97 150 int4ge --; 542 >= int2 int4 bool 541 534 168
int24ge --; 543 >= int4 int2 bool 540 535 169 int42ge --; 612 >= oid oid bool 611 609 1639 oidge
--; 625 >= float4 float4 bool 624 622 292 float4ge --; 634 >= char char bool 632 631 74 charge --;
648 >= oidvector oidvector bool 647 645 680 oidvectorge --; 663 >= name name bool 661 660 658
namege --; 667 >= text text bool 665 664 743 text_ge --; 675 >= float8 float8 bool 673 672 298
float8ge --; 1061 >= bpchar bpchar bool 1059 1058 1052 bpcharge --; 1075 >= anyarray anyarray bool
1074 1072 396 array_ge --; 1098 >= date date bool 1096 1095 1090 date_ge --; 1113 >= time time
bool 1111 1110 1105 time_ge --; 1125 >= float4 float8 bool 1134 1122 304 float48ge --; 1135 >=
float8 float4 bool 1124 1132 310 float84ge --; 1325 >= timestamptz timestamptz bool 1323 1322 1156
timestamptz_ge --; 1335 >= interval interval bool 1333 1332 1166 interval_ge --; 1695 >= bool bool
bool 1694 58 1692 boolge --; 1757 >= numeric numeric bool 1755 1754 1721 numeric_ge --; 1867 >=
int2 int8 bool 1872 1864 1855 int28ge --; 1873 >= int8 int2 bool 1866 1870 1861 int82ge --; 1960
>= bytea bytea bool 1958 1957 1952 byteage --; 2065 >= timestamp timestamp bool 2063 2062 2056
timestamp_ge --; 2348 >= date timestamp bool 2372 2345 2342 date_ge_timestamp --; 2361 >= date
timestamptz bool 2385 2358 2355 date_ge_timestamptz --; 2374 >= timestamp date bool 2346 2371 2368
timestamp_ge_date --; 2387 >= timestamptz date bool 2359 2384 2381 timestamptz_ge_date --; 2537 >=
timestamp timestamptz bool 2541 2534 2524 timestamp_ge_timestamptz --; 2543 >= timestamptz
timestamp bool 2535 2540 2531 timestamptz_ge_timestamp --; 2977 >= uuid uuid bool 2976 2974 2957
uuid_ge --; 3245 >= jsonb jsonb bool 3244 3242 4042 jsonb_ge --; 1879 >> int2 int4 int2 0 0 1897
int2shr --; 1885 >> int4 int4 int4 0 0 1903 int4shr --; 1891 >> int8 int4 int8 0 0 1909 int8shr
--; 3249 ?& jsonb text[] bool 0 0 4049 jsonb_exists_all --; 3248 ?| jsonb text[] bool 0 0 4048
jsonb_exists_any --; 2751 @> anyarray anyarray bool 2752 0 2748 arraycontains --; 3246 @> jsonb
jsonb bool 3250 0 4046 jsonb_contains --; 965 ^ float8 float8 float8 0 0 232 dpow --; 1038 ^
numeric numeric numeric 0 0 1739 numeric_power --; 3877 ^@ text text bool 0 0 3696 starts_with --;
1875 | int2 int2 int2 1875 0 1893 int2or --; 1881 | int4 int4 int4 1881 0 1899 int4or --; 1887 |
int8 int8 int8 1887 0 1905 int8or --; 596 |/ - float8 float8 0 0 230 dsqrt --; 349 ||
anycompatiblearray anycompatible anycompatiblearray 0 0 378 array_append --; 374 || anycompatible
anycompatiblearray anycompatiblearray 0 0 379 array_prepend --; 375 || anycompatiblearray
anycompatiblearray anycompatiblearray 0 0 383 array_cat --; 654 || text text text 0 0 1258 textcat
--; 2018 || bytea bytea bytea 0 0 2011 byteacat --; 2779 || text anynonarray text 0 0 2003
textanycat --; 2780 || anynonarray text text 0 0 2004 anytextcat --; 3284 || jsonb jsonb jsonb 0 0
3301 jsonb_concat --; 597 ||/ - float8 float8 0 0 231 dcbrt --; 639 ~ name text bool 0 640 79
nameregexeq --; 641 ~ text text bool 0 642 1254 textregexeq --; 1055 ~ bpchar text bool 0 1056
1658 bpcharregexeq --; 1877 ~ - int2 int2 0 0 1895 int2not --; 1883 ~ - int4 int4 0 0 1901 int4not
--; 1889 ~ - int8 int8 0 0 1907 int8not --; 1226 ~* name text bool 0 1227 1240 nameicregexeq --;
1228 ~* text text bool 0 1229 1238 texticregexeq --; 1234 ~* bpchar text bool 0 1235 1656
bpcharicregexeq --; 1207 ~~ name text bool 0 1208 858 namelike --; 1209 ~~ text text bool 0 1210
850 textlike --; 1211 ~~ bpchar text bool 0 1212 1631 bpcharlike --; 1625 ~~* name text bool 0
1626 1635 nameiclike --; 1627 ~~* text text bool 0 1628 1633 texticlike --; 1629 ~~* bpchar text
bool 0 1630 1660 bpchariclike --
"""


@cache
def equality_of(type_name: str) -> int:
    """The number of ``=`` between two values of a type, as foreign keys compare them; 0: none."""
    wanted = "text" if type_name == "varchar" else type_name
    for each in OPERATORS.split(";"):
        words = each.split()
        if words[1:4] == ["=", wanted, wanted]:
            return int(words[0])
    return 0
