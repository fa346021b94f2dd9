{{ config(materialized='table', indexes=[{'columns': ['customer'], 'unique': true}, {'columns': ['spent']}]) }}
select customer, cast(sum(amount) as numeric(12,2)) as spent
from {{ ref('placed_orders') }} group by customer
