select * from {{ ref('placed_orders') }} where amount < 0
