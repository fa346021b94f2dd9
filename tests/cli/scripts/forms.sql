\set QUIET on
\pset null ''
\set T 'select 1 as id, ''oak, red'' as name, 12.50 as price, null::text as nothing union all select -30, e''two\nlines'', 1000000.00, ''x|y'' union all select 4, ''木 wide'', -0.05, ''"q"'' order by 1'
\set N 'select 1 as a, 2 as b where false'
:T;
:N;
\pset border 0
:T;
:N;
\pset border 2
:T;
\pset linestyle unicode
:T;
\pset border 1
:T;
\pset linestyle ascii
\x on
:T;
:N;
\pset border 0
:T;
\pset border 2
:T;
\pset linestyle unicode
:T;
\pset linestyle ascii
\pset border 1
\x off
\t on
:T;
\x on
:T;
\x off
\t off
\pset title 'A title'
:T;
\x on
:T;
\x off
\pset title
\a
:T;
:N;
\x on
:T;
\x off
\t
:T;
\t
\f ';'
:T;
\a
\pset footer off
:T;
\pset footer
\pset columns 30
\pset format wrapped
\x auto
\pset format aligned
select 1 as one, 2 as two;
\x off
\pset columns 0
\pset format html
:T;
\x
:T;
\x
\pset format aligned
select 1 as "two
lines", 2 as x;
\x
select 1 as "two
lines", 2 as x;
\x
\g
select 1 as a \g (format=unaligned tuples_only=on)
select 1 as a, 'x' as b \gx
select 'a' as x, 5 as y \gset p_
\echo :p_x :'p_x' :"p_y" :{?p_x} :{?no} :no 'quo\tted' "dou ble" `echo hi :p_x`
\echo -n a b
\echo
\if :{?p_x}
\echo one
\elif true
\echo two
\else
\echo three
\endif
\if false
select 1/0;
\echo no `exit 3`
\elif false
\echo no
\else
\echo else
\if 0
\echo no
\else
\echo inner
\endif
\endif
select 1
\if yes
 + 1
\else
 + 100
\endif
 + 3 as sum;
select 'select ' || x || ' as n' from generate_series(1, 2) as t(x) order by x \gexec
select $$a;b$$ as d, $x$ ; $x$ as e, E'it\'s;' as f, 'a''b;' as g /* ; /* ; */ ; */ -- ;
;
select 1 as "semi;colon";
\pset pager off
\timing off
\encoding
\unset T
\echo :T
\set a b c 'd e'
\echo :a
\echo :'a'
\if off
\endif
\echo a \\ \echo b
\qecho to output
\warn to errors
\echo :SQLSTATE :ROW_COUNT :ERROR
\echo :SQLSTATE :ROW_COUNT :ERROR :LAST_ERROR_SQLSTATE
\setenv X_Y z
\getenv got X_Y
\echo :got
create table copied (id int primary key, name text);
copy copied from stdin;
1	one; two
2	\N
\.
copy (select id, name from copied order by id) to stdout;
\copy (select * from copied order by id) to stdout csv
drop table copied;
\pset format csv
\C 'Caption'
select 1 as a, 'x,y' as b;
\pset format aligned
select 1 as "two
lines", 2 as x;
\x
select 1 as "two
lines", 2 as x;
\pset border 2
select 1 as "two
lines", e'some\nvalue' as x;
\x
select 1 as "two
lines", e'some\nvalue' as x;
\pset border 0
select 1 as "two
lines", e'some\nvalue' as x;
