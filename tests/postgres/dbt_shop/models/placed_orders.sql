{{ config(materialized='view') }}
select o.id, o.customer, c.name, o.amount, o.status, o.ordered
from {{ ref('orders') }} o join {{ ref('customers') }} c on c.id = o.customer
