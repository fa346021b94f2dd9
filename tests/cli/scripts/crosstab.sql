\pset null ''
CREATE TABLE sales (region TEXT, q INT, amount NUMERIC(8,2), kind TEXT);
INSERT INTO sales VALUES ('north', 1, 10.5, 'a'), ('north', 2, 20, 'a'), ('south', 1, NULL, 'b'), ('south', 3, 7, 'b'), (NULL, 2, 1, 'c');
SELECT region, q, amount FROM sales ORDER BY region, q \crosstabview
SELECT region, q, amount FROM sales ORDER BY region DESC, q DESC \crosstabview region q amount q
SELECT region, q, amount, kind FROM sales ORDER BY kind, q \crosstabview 4 2 3
SELECT q, region, amount FROM sales ORDER BY 1, 2 \crosstabview
SELECT region, q, amount FROM sales WHERE q > 9 \crosstabview
DELETE FROM sales WHERE q = 99 \crosstabview
\pset null -
SELECT region, q, amount FROM sales ORDER BY region, q \crosstabview
\pset border 2
SELECT region, q, amount FROM sales ORDER BY region, q \crosstabview
DROP TABLE sales;
