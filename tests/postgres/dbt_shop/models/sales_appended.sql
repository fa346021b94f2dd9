{{ config(materialized='incremental', incremental_strategy='append') }}
select id, amount, at from {{ source('till', 'sales') }}
{% if is_incremental() %} where at > (select max(at) from {{ this }}) {% endif %}
