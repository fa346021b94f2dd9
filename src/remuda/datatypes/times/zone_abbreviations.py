"""Abbreviations of time zones, as PostgreSQL's default set has them."""

from __future__ import annotations

from typing import Final

_FIXED: Final = """
-36000 HST TAHT
-34200 MART
-32400 AKST GAMT
-28800 AKDT PST
-25200 MST PDT
-21600 CST GALT MDT
-18000 ACT CDT COT EST PET
-14400 AMT AST BOT EDT
-12600 NFT NST
-10800 ADT BRA BRT CLST GFT PMST PYST UYT WGT
-9000 NDT
-7200 BRST FNT PMDT UYST WGST
-3600 AZOT EGT FNST
0 AZOST EGST GMT UCT UT UTC WET Z ZULU
3600 BST CET MET MEZ WAT WETDST
7200 BDST CEST CETDST EET IST MEST MESZ METDST SAST
10800 EAT EEST EETDST FET IDT
12600 IRT
14400 MSD MUT RET SCT
16200 AFT
18000 MUST MVT PKT TFT TJT UZT
20700 NPT
21600 ALMT BDT BTT KGST PKST UZST XJT YEKST
23400 MMT
25200 ALMST CXT ICT WAST
28800 AWST BNT BORT CCT HKT MYT PHT WADT
31500 ACWST
32400 AWSST JAYT JST KST PWT ULAST WDT
34200 ACST CAST
36000 AEST CHUT DDUT KDT LIGT MPT PGT TRUT YAPT
37800 ACDT ACSST CADT LHST SADT
39600 AEDT AESST PONT VUT
43200 FJT GILT MHT NZST NZT TVT WAKT WFT
45900 CHAST
46800 FJST NZDT TOT
49500 CHADT
"""
"""Seconds east of UTC, and the abbreviations that always mean them."""
_CHANGING: Final = """
America/Argentina/Buenos_Aires ARST ART
America/Asuncion PYT
America/Caracas VET
America/Guyana GYT
America/Santiago CLT
Antarctica/Davis DAVT
Antarctica/Mawson MAWT
Asia/Anadyr ANAST ANAT
Asia/Ashgabat TMT
Asia/Baku AZST AZT
Asia/Bishkek KGT
Asia/Colombo LKT
Asia/Irkutsk IRKST IRKT
Asia/Kamchatka PETST PETT
Asia/Krasnoyarsk KRAST KRAT
Asia/Magadan MAGST MAGT
Asia/Novosibirsk NOVST NOVT
Asia/Omsk OMSST OMST
Asia/Singapore SGT
Asia/Tbilisi GEST GET
Asia/Ulaanbaatar ULAT
Asia/Vladivostok VLAST VLAT
Asia/Yakutsk YAKST YAKT
Asia/Yekaterinburg YEKT
Asia/Yerevan AMST
Atlantic/Stanley FKST FKT
Australia/Lord_Howe LHDT
Europe/Moscow MSK
Europe/Volgograd VOLT
Indian/Chagos IOT
Pacific/Easter EASST EAST
Pacific/Fakaofo TKT
Pacific/Kiritimati LINT
Pacific/Kosrae KOST
Pacific/Niue NUT
Pacific/Rarotonga CKT
"""
"""A zone, and the abbreviations whose offset its history tells."""


def _read(lines: str) -> dict[str, str]:
    return {
        name: first
        for first, *names in (line.split() for line in lines.strip().splitlines())
        for name in names
    }


OFFSETS: Final = {name: int(seconds) for name, seconds in _read(_FIXED).items()}
ZONES: Final = _read(_CHANGING)
