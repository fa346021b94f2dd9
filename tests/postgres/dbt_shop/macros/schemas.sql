{% macro generate_schema_name(custom, node) %}{{ custom or target.schema }}{% endmacro %}
