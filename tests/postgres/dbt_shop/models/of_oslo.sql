{{ config(materialized='ephemeral') }}
select id from {{ ref('customers') }} where city = 'Oslo'
