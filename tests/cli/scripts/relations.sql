\pset null ''
create table places (id int primary key, name text);
create table visits (id int primary key, place int references places, again int, constraint again_key foreign key (again) references visits (id));
\d visits
\d places
create type mood as enum ('sad', 'ok', 'happy');
create table trees (id bigint primary key, name varchar(20) not null default 'oak', price numeric(9,2), since date, tags text[], m mood, unique (name, since));
create index trees_price on trees (price desc);
create index trees_since on trees (since, id);
create view cheap as select id, name from trees where price < 10;
create sequence numbers start 5 increment 2;
comment on table trees is 'all trees';
comment on column trees.price is 'in euro';
create schema s2;
create table s2.other (a int, b int generated always as identity, c text, primary key (a, b));
create table copies (id int primary key, name text) with (replicated = true, ttl = '10 s');
\d
\dt
\dv
\d trees
\d+ cheap
\d copies
\sv cheap
\sv+ cheap
\dp t*
\dT+ mood
\dx
\df lower
\da avg
\dconfig work_mem
\x on
\dv
\x off
\a
\dt
\a
\d trees_price
\d trees_pkey
\d numbers
\d s2.other
\d s2.other_b_seq
\ds
\sv nothing
\d nothing
\dt nothing
\di tr*
\dT
\d mood
\d pl?ces
\d "Trees"
\dn s*
\conninfo
drop view cheap;
drop table visits, trees, places, copies, s2.other;
drop sequence numbers;
drop type mood;
drop schema s2;
\d
