{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['id']) }}
select id, amount, at from {{ source('till', 'sales') }}
