{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id',
          on_schema_change='append_new_columns') }}
select id, amount, at {% if is_incremental() %}, 'later' as seen {% endif %}
from {{ source('till', 'sales') }}
