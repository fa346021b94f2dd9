{{ config(materialized='table') }}
select customer, spent from {{ ref('totals') }} where customer in (select id from {{ ref('of_oslo') }})
